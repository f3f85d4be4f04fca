//! What a catalogue needs of storage.

use thiserror::Error;

/// The storage of one catalogue. Keys are relative to its root.
///
/// Promises:
///
/// - An object is read whole or not at all, also while it is being replaced, and a read returns the latest
///   write that was reported as done.
/// - [`Objects::replace`]: of several that replace one state of an object, at most one succeeds.
/// - A missing object is not an error, and no error means "missing".
/// - The modification time of an object is never earlier than the moment at which its write began, but for
///   the difference between clocks.
pub trait Objects: Send + Sync {
    /// An object, unless it still has this ETag.
    ///
    /// # Errors
    /// [`StoreError`] when it could not be read, or has more than [`OBJECT_MAX_BYTES`]: then it need not be read.
    fn get(
        &self,
        key: &str,
        known_etag: Option<&str>,
    ) -> impl Future<Output = Result<Fetched, StoreError>> + Send;

    /// Writes an object, whether or not there is one.
    ///
    /// # Errors
    /// [`StoreError`] when it is not certain that the object was written.
    fn put(&self, key: &str, bytes: Vec<u8>)
    -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Writes an object only if nobody wrote it since: `known_etag` is the ETag that the caller read, `None`
    /// if there was no object. `false`: somebody did, perhaps this very call, whose first answer was lost.
    ///
    /// # Errors
    /// [`StoreError`] when it is not certain whether the object was written.
    fn replace(
        &self,
        key: &str,
        bytes: Vec<u8>,
        known_etag: Option<&str>,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Objects with keys that begin with this prefix and are after this one, in the order of the keys' bytes.
    /// Each call returns some of them, and none only when there are no more.
    ///
    /// # Errors
    /// [`StoreError`] when they could not be listed.
    fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
    ) -> impl Future<Output = Result<Vec<Listed>, StoreError>> + Send;

    /// Removes at most [`DELETE_MAX`] objects; one that does not exist counts as removed.
    ///
    /// # Errors
    /// [`StoreError`] when some may still be there.
    fn delete(&self, keys: &[String]) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// No object is larger: a writer of other objects cannot fill the memory of a reader.
pub const OBJECT_MAX_BYTES: u64 = 256 * 1024;

/// The most keys of one [`Objects::delete`].
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html>
pub const DELETE_MAX: usize = 1_000;

/// What a read found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// There is no such object.
    Missing,
    /// The object still has the ETag that the caller knows.
    Unchanged,
    /// The object is new, or has changed.
    Changed {
        /// Its content.
        bytes: Vec<u8>,
        /// Its ETag.
        etag: String,
    },
}

/// An object of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its key.
    pub key: String,
    /// When it was written, by the clock of storage.
    pub modified_ms: u64,
}

/// Why storage could not do its work, for people.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct StoreError(pub String);
