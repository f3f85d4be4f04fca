//! [`Replay`]: the dead letter that a delivery replays, and the job of the replay.
//!
//! This module is separate because a delivery contains its [`Replay`]; the result of the delivery
//! is in `end`.

use uuid::Uuid;

/// Folder of the replay ledgers, in the container of the dead letters.
pub const REPLAYS_FOLDER: &str = "_replays";
/// Folder of a job's results, within the ledger of the job.
const ENDS_FOLDER: &str = "ends";
/// Maximum length of a job name in bytes.
const JOB_NAME_MAX_BYTES: usize = 100;

/// Returns true if the text is a valid job name. Such a name can be a segment of a key without
/// encoding.
#[must_use]
pub fn is_job_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let fits = !name.is_empty() && name.len() <= JOB_NAME_MAX_BYTES;
    // A leading dot would make a folder hidden, or refer to its parent.
    fits && !name.starts_with('.') && name.bytes().all(plain)
}

/// The dead letter that a delivery replays, and the job of the replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    job: String,
    /// The id of the dead letter that is replayed.
    pub letter: Uuid,
}

impl Replay {
    /// Returns the replay of a dead letter by a job; `None` if the job name is invalid.
    #[must_use]
    pub fn new(job: &str, letter: Uuid) -> Option<Self> {
        is_job_name(job).then(|| Self { job: job.to_owned(), letter })
    }

    /// Returns the name of the replay job, which is a valid segment of a key.
    #[must_use]
    pub fn job(&self) -> &str {
        &self.job
    }
}

/// Returns the folder of a job's results. `prefix` is the prefix of all keys in the container.
#[must_use]
pub fn ends_folder(prefix: &str, job: &str) -> String {
    let prefix = prefix.trim_matches('/');
    let slash = if prefix.is_empty() { "" } else { "/" };
    format!("{prefix}{slash}{REPLAYS_FOLDER}/{job}/{ENDS_FOLDER}/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_named_so_that_its_name_can_be_a_folder() {
        for (name, is) in [
            ("a-1.b_C", true),
            ("", false),
            ("a/b", false),
            ("..", false),
            ("a b", false),
            ("ö", false),
        ] {
            assert_eq!(is_job_name(name), is, "{name}");
            assert_eq!(Replay::new(name, Uuid::from_u128(1)).is_some(), is, "{name}");
        }
    }
}
