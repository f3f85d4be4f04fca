//! HTTP methods of requests.

/// An HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Delivers events, unless the destination states another method.
    Post,
    /// Replaces the resource at the address.
    Put,
    /// Changes the resource at the address.
    Patch,
    /// Removes the resource at the address.
    Delete,
    /// Reads; the request has no body.
    Get,
    /// Asks for consent (CloudEvents handshake). No destination may state it.
    Options,
}

impl Method {
    /// The methods that a destination may state.
    pub const OF_EVENTS: [Self; 5] = [Self::Post, Self::Put, Self::Patch, Self::Delete, Self::Get];

    /// Returns the method in upper case, as HTTP requires.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Get => "GET",
            Self::Options => "OPTIONS",
        }
    }
}
