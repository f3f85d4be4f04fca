//! [`Method`]: HTTP methods of requests.

/// The HTTP method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// POST delivers an event. It is the default.
    Post,
    /// PUT replaces the resource at the URL.
    Put,
    /// PATCH changes the resource at the URL.
    Patch,
    /// DELETE removes the resource at the URL.
    Delete,
    /// GET reads the resource at the URL. The request has no body.
    Get,
    /// OPTIONS asks for consent (CloudEvents handshake). No destination may state this method.
    Options,
}

impl Method {
    /// The methods that a destination may state for its requests.
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
