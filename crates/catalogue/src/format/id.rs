//! The name of an object: the digest of its bytes.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of an object's bytes; as text 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id([u8; 32]);

impl Id {
    /// The length of its text.
    pub(crate) const TEXT_BYTES: usize = 64;

    /// The id of an object with these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The id that is written like this; `None` if it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut digest = [0; 32];
        hex::decode_to_slice(text, &mut digest).ok()?;
        let id = Self(digest);
        (id.to_string() == text).then_some(id)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let problem =
            || format!("{text:?} is not an id: 64 lower-case hexadecimal digits are expected");
        Self::parse(&text).ok_or_else(|| de::Error::custom(problem()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_spelling() {
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Id::of(b"abc").to_string(), text);
        assert_eq!(Id::parse(text), Some(Id::of(b"abc")));
        for other in
            [text.to_uppercase(), text[2..].to_owned(), format!("{text}00"), text.replace('b', "g")]
        {
            assert_eq!(Id::parse(&other), None, "{other}");
        }
    }
}
