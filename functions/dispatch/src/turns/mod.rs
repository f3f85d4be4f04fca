//! Whose turn it is, where a destination takes so many requests a second or so many at once, from all
//! processes together, or has too much to do.

mod adaptive;
mod leases;
mod rate;

/// Before a shared document is asked, the other deliveries of the invocation may come to the same
/// question: then it is asked once for all.
const GATHER_MS: u64 = 5;
