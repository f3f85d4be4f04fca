//! A fingerprint of the dead letters that a page showed. Its form sends it, so that it changes
//! exactly these or none.

use uuid::Uuid;

/// The form field of the fingerprint.
pub(in crate::console) const FINGERPRINT: &str = "fingerprint";

/// The fingerprint of these dead letters, which does not depend on their order.
pub(in crate::console) fn fingerprint(letters: impl IntoIterator<Item = Uuid>) -> String {
    let mut letters: Vec<Uuid> = letters.into_iter().collect();
    letters.sort_unstable();
    let bytes: Vec<u8> = letters.iter().flat_map(|id| *id.as_bytes()).collect();
    Uuid::new_v5(&Uuid::nil(), &bytes).to_string()
}
