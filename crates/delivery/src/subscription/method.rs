//! The method of a request.

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Delivers events, unless the destination names another method.
    Post,
    /// Replaces what is at the address.
    Put,
    /// Changes what is at the address.
    Patch,
    /// Removes what is at the address.
    Delete,
    /// Reads; the request has no body.
    Get,
    /// Asks for consent (CloudEvents handshake).
    Options,
}

impl Method {
    /// The methods that a destination may name.
    pub const OF_EVENTS: [Self; 5] = [Self::Post, Self::Put, Self::Patch, Self::Delete, Self::Get];

    /// As it is sent.
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
