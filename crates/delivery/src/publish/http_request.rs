//! An HTTP request, as a server received it.
//!
//! Separate because each check of a request reads another part of it.

/// A request, as a server received it.
#[derive(Debug, Clone, Copy)]
pub struct HttpRequest<'a> {
    /// Method, in upper case.
    pub method: &'a str,
    /// Path without the query, percent-encoded as received.
    pub path: &'a str,
    /// Query without its question mark; empty if there is none.
    pub query: &'a str,
    /// Headers, with names in lower case.
    pub headers: &'a [(String, Vec<u8>)],
    /// Body of the request.
    pub body: &'a [u8],
}

impl<'a> HttpRequest<'a> {
    /// Returns the first value of a header, if it is visible ASCII.
    pub(super) fn header(&self, name: &str) -> Option<&'a str> {
        let (_, value) = self.headers.iter().find(|(of, _)| of == name)?;
        let is_visible = value.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
        std::str::from_utf8(value).ok().filter(|_| is_visible)
    }
}
