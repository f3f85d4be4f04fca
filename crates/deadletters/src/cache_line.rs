//! Reads and writes the lines of the cache on disk. A line has the key, the ETag and the content of
//! one object. Pure.
//!
//! Separate from [`crate::disk_cache`], which manages the cache file.
//!
//! Promises: a line is read back exactly as it was written, or not at all.

use std::borrow::Cow;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

/// Version of the line format. Increment the number if the content of lines, or the way objects are
/// read, changes within one release; otherwise an old line would be read as a new one.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-2");

#[derive(Serialize, Deserialize)]
struct Line<'l, T> {
    #[serde(borrow)]
    v: Cow<'l, str>,
    #[serde(borrow)]
    key: Cow<'l, str>,
    #[serde(borrow)]
    etag: Cow<'l, str>,
    content: T,
}

pub(crate) fn write_line(key: &str, etag: &str, content: &impl Serialize) -> Vec<u8> {
    let line = Line { v: VERSION.into(), key: key.into(), etag: etag.into(), content };
    let mut bytes = serde_json::to_vec(&line).expect("plain structs serialize");
    bytes.push(b'\n');
    bytes
}

/// Returns the key and the ETag of a line; `None` if the line is damaged or has a different
/// version.
pub(crate) fn line_head(line: &[u8]) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    let line: Line<'_, IgnoredAny> = serde_json::from_slice(line).ok()?;
    (line.v == VERSION).then_some((line.key, line.etag))
}

/// Returns the content of a line; `None` if the line belongs to a different key, is damaged or has
/// a different version.
pub(crate) fn read_line<T: DeserializeOwned>(line: &[u8], key: &str) -> Option<T> {
    let line: Line<'_, T> = serde_json::from_slice(line).ok()?;
    (line.v == VERSION && line.key == key).then_some(line.content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_back_unless_it_is_damaged_or_of_another_object_or_version() {
        let content = vec!["a\nb".to_owned(), "\"c\"".to_owned()];
        let line = write_line("key", "\"etag\"", &content);
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        let read = |line: &[u8], key| read_line::<Vec<String>>(line, key);
        assert_eq!(read(&line, "key"), Some(content));
        let (key, etag) = line_head(&line).unwrap();
        assert_eq!((&*key, &*etag), ("key", "\"etag\""));
        assert_eq!(read(&line, "another"), None);
        let cut = &line[..line.len() / 2];
        assert!(line_head(cut).is_none() && read(cut, "key").is_none());
        let other = String::from_utf8(line).unwrap().replace(VERSION, "0.0.0-0");
        assert!(line_head(other.as_bytes()).is_none() && read(other.as_bytes(), "key").is_none());
    }
}
