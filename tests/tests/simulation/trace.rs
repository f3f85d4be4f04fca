//! The trace of a world: one line of text for each step that the world sees.
//!
//! A replayed seed prints its trace while the seed runs. A test keeps the trace and compares it, byte for
//! byte, with the trace of a second run. Bytes that are too many for a line appear as a digest.

use std::cell::RefCell;
use std::io::Write as _;

use delivery::request::Request;
use sha2::{Digest as _, Sha256};

use super::world::Inner;

/// The destination of the lines of a trace.
#[derive(Debug, Default)]
pub(crate) enum Trace {
    /// Nowhere.
    #[default]
    Off,
    /// To standard output, at once: a run that panics or never ends shows how far it came.
    Printed,
    /// In memory, to compare it with the trace of another run.
    Kept(RefCell<String>),
}

impl Trace {
    /// The lines, if they were kept.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Off | Self::Printed => String::new(),
            Self::Kept(text) => text.borrow().clone(),
        }
    }
}

impl Inner {
    /// Adds a line to the trace, with the time and the number of the invocation.
    pub(crate) fn trace(&self, describe: impl FnOnce() -> String) {
        if matches!(self.trace, Trace::Off) {
            return;
        }
        let since_ms = self.now_ms - self.began_ms;
        let (seconds, ms) = (since_ms / 1_000, since_ms % 1_000);
        let line = format!("{seconds:>10}.{ms:03}  #{:<4} {}\n", self.current, describe());
        match &self.trace {
            Trace::Off => {}
            // Written past the test harness, which shows output of failed tests only.
            Trace::Printed => _ = std::io::stdout().write_all(line.as_bytes()),
            Trace::Kept(text) => text.borrow_mut().push_str(&line),
        }
    }
}

/// Stands for bytes in a trace.
pub(crate) fn digest(bytes: impl AsRef<[u8]>) -> String {
    hex::encode(&Sha256::digest(bytes)[..4])
}

/// Stands for all that a destination receives.
pub(crate) fn request_digest(request: &Request) -> String {
    let Request { method, url, headers, body, .. } = request;
    digest(format!("{method:?} {url} {headers:?} {body:?}"))
}
