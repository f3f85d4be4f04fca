//! Computes a fingerprint of the dead letters that a page shows. The form of the page contains the
//! fingerprint. An action then applies to exactly these dead letters, or to none.
//!
//! The number of dead letters would not suffice: one may have been replayed while another arrived.
//! The number is then the same, and the action would apply to a dead letter that nobody has seen.

use uuid::Uuid;

/// The name of the form field with the fingerprint.
pub(in crate::console) const FINGERPRINT: &str = "fingerprint";

/// Computes the fingerprint of these dead letters. The order of the ids does not matter.
pub(in crate::console) fn fingerprint(letters: impl IntoIterator<Item = Uuid>) -> String {
    let mut letters: Vec<Uuid> = letters.into_iter().collect();
    letters.sort_unstable();
    let bytes: Vec<u8> = letters.iter().flat_map(|id| *id.as_bytes()).collect();
    Uuid::new_v5(&Uuid::nil(), &bytes).to_string()
}
