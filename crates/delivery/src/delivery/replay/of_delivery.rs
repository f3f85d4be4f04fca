//! The dead letter that a delivery replays, and the job that does.
//!
//! Separate because a delivery carries it, and its end is only known later.

use uuid::Uuid;

/// The folder of the ledgers of replays, beside the dead letters.
pub const REPLAYS_FOLDER: &str = "_replays";
/// The folder of the ends of a job, in its ledger.
const ENDS_FOLDER: &str = "ends";
/// A longer job name is refused.
const JOB_NAME_MAX_BYTES: usize = 100;

/// Whether a text can be the name of a job: it is a segment of a key as it is.
#[must_use]
pub fn is_job_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let fits = !name.is_empty() && name.len() <= JOB_NAME_MAX_BYTES;
    // No name that a folder would read as hidden, or as its parent.
    fits && !name.starts_with('.') && name.bytes().all(plain)
}

/// The dead letter that a delivery replays, and the job that does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    job: String,
    /// The id of the dead letter.
    pub letter: Uuid,
}

impl Replay {
    /// The replay of a dead letter by a job; `None` when no job can have this name.
    #[must_use]
    pub fn new(job: &str, letter: Uuid) -> Option<Self> {
        is_job_name(job).then(|| Self { job: job.to_owned(), letter })
    }

    /// The name of the job.
    #[must_use]
    pub fn job(&self) -> &str {
        &self.job
    }
}

/// The folder of the ends of a job, in the container with this prefix.
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
