//! A request over HTTP, as a server received it.
//!
//! Separate because each question about a request reads another part of it.

/// A request, as a server received it.
#[derive(Debug, Clone, Copy)]
pub struct HttpRequest<'a> {
    /// The method, in upper case.
    pub method: &'a str,
    /// The path, percent-encoded as it came, without the query.
    pub path: &'a str,
    /// The query without its question mark; empty if there is none.
    pub query: &'a str,
    /// Names in lower case, and values.
    pub headers: &'a [(String, Vec<u8>)],
    /// The body.
    pub body: &'a [u8],
}

impl<'a> HttpRequest<'a> {
    /// The first value of a header, if it is visible ASCII.
    pub(super) fn header(&self, name: &str) -> Option<&'a str> {
        let (_, value) = self.headers.iter().find(|(of, _)| of == name)?;
        let is_visible = value.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
        std::str::from_utf8(value).ok().filter(|_| is_visible)
    }
}
