//! An HTTP request, as a server received it.
//!
//! This module is separate because each check of a request reads a different part of it.

/// An HTTP request, as a server received it.
#[derive(Debug, Clone, Copy)]
pub struct HttpRequest<'a> {
    /// HTTP method, in upper case.
    pub method: &'a str,
    /// Path of the URL without the query, percent-encoded as received.
    pub path: &'a str,
    /// Query of the URL without its question mark; empty if there is none.
    pub query: &'a str,
    /// Headers of the request: names in lower case, and values.
    pub headers: &'a [(String, Vec<u8>)],
    /// Body of the request, as received.
    pub body: &'a [u8],
}

impl<'a> HttpRequest<'a> {
    /// Returns the first value of a header; `None` if the header is missing or is not visible
    /// ASCII.
    pub(super) fn header(&self, name: &str) -> Option<&'a str> {
        let (_, value) = self.headers.iter().find(|(header, _)| header == name)?;
        let is_visible = value.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
        std::str::from_utf8(value).ok().filter(|_| is_visible)
    }
}
