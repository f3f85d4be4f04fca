//! Converts keys to file paths.
//!
//! It is separate because it is a security boundary: a key comes from outside and becomes a path on
//! this machine. It promises that the path of a key is inside its bucket, and a clear error for a
//! key that cannot be a path. S3 itself accepts more keys than a file system.

use std::path::{Path, PathBuf};

use s3s::{S3Error, s3_error};

/// The longest file name, in bytes, on common file systems.
const SEGMENT_LIMIT_BYTES: usize = 255;

/// The path of a key inside its bucket's folder.
///
/// # Errors
/// When a segment of the key is empty, `.`, `..`, longer than 255 bytes, or holds a control
/// character.
pub(super) fn path(bucket: &Path, key: &str) -> Result<PathBuf, S3Error> {
    let mut path = bucket.to_path_buf();
    for segment in key.split('/') {
        check_segment(key, segment)?;
        path.push(segment);
    }
    Ok(path)
}

/// Whether a name can be a segment of a key.
pub(super) fn is_segment(name: &str) -> bool {
    check_segment(name, name).is_ok()
}

fn check_segment(key: &str, segment: &str) -> Result<(), S3Error> {
    if segment.len() > SEGMENT_LIMIT_BYTES {
        return Err(s3_error!(
            KeyTooLongError,
            "each part of a key between slashes is a file name here, of at most {SEGMENT_LIMIT_BYTES} bytes; \
             this one has {}",
            segment.len()
        ));
    }
    if matches!(segment, "" | "." | "..")
        || segment.chars().any(|c| c.is_control() || c == std::path::MAIN_SEPARATOR)
    {
        return Err(s3_error!(
            InvalidArgument,
            "the key {key:?} cannot be a file: no part between slashes may be empty, '.' or '..', or hold a control \
             character"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_lies_inside_its_bucket() {
        let bucket = Path::new("/data/bucket");
        let found = path(bucket, "ns/a%2F..%2Fb/2026/.hidden.json").expect("a key");
        assert_eq!(found, Path::new("/data/bucket/ns/a%2F..%2Fb/2026/.hidden.json"));
    }

    #[test]
    fn a_key_that_would_leave_its_bucket_is_refused() {
        for key in [
            "../x",
            "a/../../x",
            "..",
            "/etc/passwd",
            "a//b",
            "a/",
            ".",
            "a/./b",
            "",
            "a/\0b",
            "a\nb",
        ] {
            assert!(path(Path::new("/data/bucket"), key).is_err(), "{key:?}");
        }
    }

    #[test]
    fn a_segment_is_as_long_as_a_file_name_and_no_longer() {
        assert!(is_segment(&"x".repeat(255)));
        let error = path(Path::new("/data/bucket"), &"x".repeat(256)).expect_err("too long");
        assert_eq!(error.code().as_str(), "KeyTooLongError");
    }
}
