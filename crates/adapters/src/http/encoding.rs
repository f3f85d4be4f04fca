//! Decodes responses in gzip, deflate and br before their bodies are read. Requests do not accept
//! these codings, but some servers ignore this.
//!
//! Promises: decodes at most [`CODINGS_MAX`] codings. The size limit of an unencoded response also
//! applies to the output of each coding.

use std::io::{self, Read};

use brotli_decompressor::Decompressor;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use thiserror::Error;

/// Maximum number of codings of a body. A body with more stays encoded. Each coding costs CPU time,
/// and no server needs two.
const CODINGS_MAX: usize = 2;
/// Buffer size of the Brotli decoder.
const BROTLI_BUFFER_BYTES: usize = 4_096;

/// A body after decoding.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Decoded {
    pub(super) body: Vec<u8>,
    /// True if the body is complete.
    pub(super) whole: bool,
}

/// The error for a complete body that contradicts its `Content-Encoding`.
#[derive(Debug, Error)]
#[error("the response body is not valid {coding}: {why}")]
pub(super) struct Undecodable {
    coding: &'static str,
    #[source]
    why: io::Error,
    /// The decoded beginning of the body, or the encoded body if no byte could be decoded.
    pub(super) body: Vec<u8>,
}

/// A content coding that can be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Gzip,
    Deflate,
    Brotli,
}

impl Coding {
    /// Returns the coding with this name; `None` if the coding is not supported.
    fn from_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => Some(Self::Gzip),
            "deflate" => Some(Self::Deflate),
            "br" => Some(Self::Brotli),
            _ => None,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Brotli => "br",
        }
    }

    /// Decodes at most `max_bytes`. After an error, returns the bytes before the error.
    fn decode(self, body: &[u8], max_bytes: usize) -> (Vec<u8>, io::Result<usize>) {
        match self {
            Self::Gzip => read(MultiGzDecoder::new(body), max_bytes),
            // The name means zlib, but some servers send raw deflate without the zlib header.
            Self::Deflate if is_zlib(body) => read(ZlibDecoder::new(body), max_bytes),
            Self::Deflate => read(DeflateDecoder::new(body), max_bytes),
            Self::Brotli if has_large_window(body) => {
                let why = "the window is larger than the standard allows";
                (Vec::new(), Err(io::Error::new(io::ErrorKind::InvalidData, why)))
            }
            Self::Brotli => read(Decompressor::new(body, BROTLI_BUFFER_BYTES), max_bytes),
        }
    }
}

/// Decodes a body up to `max_bytes`. A body with an unsupported coding is returned unchanged.
///
/// # Errors
/// Fails if the body is complete and contradicts its coding.
pub(super) fn decode(
    headers: &HeaderMap,
    body: Vec<u8>,
    whole: bool,
    max_bytes: usize,
) -> Result<Decoded, Undecodable> {
    let Some(codings) = codings(headers) else { return Ok(Decoded { body, whole }) };
    let mut decoded = Decoded { body, whole };
    // The last coding in the header was applied last, so decode it first.
    for coding in codings.into_iter().rev() {
        if decoded.body.is_empty() {
            break;
        }
        let (mut bytes, end) = coding.decode(&decoded.body, max_bytes.saturating_add(1));
        decoded = match end {
            Ok(_) => {
                let is_cut = bytes.len() > max_bytes;
                bytes.truncate(max_bytes);
                Decoded { body: bytes, whole: decoded.whole && !is_cut }
            }
            Err(why) if decoded.whole => {
                bytes.truncate(max_bytes);
                let body = if bytes.is_empty() { decoded.body } else { bytes };
                return Err(Undecodable { coding: coding.as_str(), why, body });
            }
            // The body is incomplete, so the decoder fails at its end.
            Err(_) => Decoded { body: bytes, whole: false },
        };
    }
    Ok(decoded)
}

/// Returns the codings in the order in which they were applied; `None` if one is unsupported, or
/// there are too many.
fn codings(headers: &HeaderMap) -> Option<Vec<Coding>> {
    let values = headers.get_all(CONTENT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let names = values.flat_map(|value| value.split(',')).map(str::trim);
    let applied = names.filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case("identity"));
    let applied: Vec<&str> = applied.take(CODINGS_MAX + 1).collect();
    if applied.len() > CODINGS_MAX {
        return None;
    }
    applied.into_iter().map(Coding::from_name).collect()
}

fn read(decoder: impl Read, max_bytes: usize) -> (Vec<u8>, io::Result<usize>) {
    let mut decoded = Vec::new();
    let end = decoder.take(max_bytes as u64).read_to_end(&mut decoded);
    (decoded, end)
}

/// True if the body has a Brotli window above 16 MiB. The standard reserves such windows, but the
/// decoder would allocate one (RFC 7932, 9.1).
fn has_large_window(body: &[u8]) -> bool {
    body.first().is_some_and(|first| first & 0x7f == 0x11)
}

/// True if the body begins with the header of zlib (RFC 1950, 2.2).
fn is_zlib(body: &[u8]) -> bool {
    let [method, flags, ..] = body else { return false };
    method & 0x0f == 8 && (u16::from(*method) * 256 + u16::from(*flags)) % 31 == 0
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    /// `echo -n {"why":"no"} | brotli`, as a stream without compression.
    const BROTLI: &[u8] = b"\x8b\x05\x80{\"why\":\"no\"}\x03";
    const TEXT: &[u8] = br#"{"why":"no"}"#;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).and_then(|()| encoder.finish()).expect("a Vec takes everything")
    }

    fn decoded(encoding: &[&str], body: &[u8], whole: bool) -> Result<Decoded, String> {
        let mut headers = HeaderMap::new();
        for value in encoding {
            headers.append(CONTENT_ENCODING, value.parse().expect("a value"));
        }
        decode(&headers, body.to_vec(), whole, 1_000).map_err(|error| error.to_string())
    }

    #[test]
    fn every_coding_is_undone_in_the_order_in_which_they_were_applied() {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(TEXT).expect("a Vec takes everything");
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
        raw.write_all(TEXT).expect("a Vec takes everything");
        let (zlib, raw) = (zlib.finish().expect("a Vec"), raw.finish().expect("a Vec"));
        let two_members = [gzip(&TEXT[..4]), gzip(&TEXT[4..])].concat();
        for (encoding, body) in [
            (&["gzip"][..], gzip(TEXT)),
            (&["X-GZip"], gzip(TEXT)),
            (&["gzip"], two_members),
            (&["deflate"], zlib.clone()),
            (&["deflate"], raw),
            (&["br"], BROTLI.to_vec()),
            (&["deflate, gzip"], gzip(&zlib)),
            (&["deflate", "identity, gzip"], gzip(&zlib)),
            (&["identity"], TEXT.to_vec()),
            (&[], TEXT.to_vec()),
            // An unsupported coding, or too many codings: the body stays unchanged.
            (&["zstd"], TEXT.to_vec()),
            (&["gzip, zstd"], TEXT.to_vec()),
            (&["gzip, gzip, gzip"], TEXT.to_vec()),
        ] {
            let found = decoded(encoding, &body, true);
            assert_eq!(found, Ok(Decoded { body: TEXT.to_vec(), whole: true }), "{encoding:?}");
        }
    }

    #[test]
    fn no_more_is_decoded_than_may_be_read() {
        let bomb = gzip(&vec![b'x'; 10_000_000]);
        let found = decoded(&["gzip"], &bomb, true);
        assert_eq!(found, Ok(Decoded { body: vec![b'x'; 1_000], whole: false }));
        let exact = decoded(&["gzip"], &gzip(&[b'x'; 1_000]), true);
        assert_eq!(exact, Ok(Decoded { body: vec![b'x'; 1_000], whole: true }));
    }

    #[test]
    fn the_beginning_of_a_body_is_decoded_and_a_whole_one_that_is_wrong_is_an_error() {
        let body = gzip(TEXT);
        let cut = decoded(&["gzip"], &body[..body.len() - 9], false).expect("a beginning");
        assert!(!cut.whole && TEXT.starts_with(&cut.body), "{cut:?}");
        for (encoding, body) in [
            ("gzip", &body[..body.len() - 9]),
            ("gzip", TEXT),
            ("br", &BROTLI[..5]),
            ("br", &[0x11; 9]),
        ] {
            let why = decoded(&[encoding], body, true).expect_err(encoding);
            assert!(why.contains(&format!("is not valid {encoding}")), "{why}");
        }
        // One byte too many: only the decoded bytes are kept, because credentials in encoded bytes
        // could not be redacted.
        let mut headers = HeaderMap::new();
        headers.append(CONTENT_ENCODING, "gzip".parse().expect("a value"));
        let padded = decode(&headers, [&gzip(TEXT)[..], b"\0"].concat(), true, 1_000);
        assert_eq!(padded.map_err(|error| error.body), Err(TEXT.to_vec()));
        assert_eq!(decoded(&["gzip"], b"", true), Ok(Decoded { body: Vec::new(), whole: true }));
    }
}
