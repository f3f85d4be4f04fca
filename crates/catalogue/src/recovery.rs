//! What a writer does where there is no pointer: nothing was ever written, the first change of all was
//! interrupted, or the pointer was lost.
//!
//! Separate because only writers look. To readers a namespace without a pointer has nothing new, and a writer
//! that took it for an empty one would begin a new history without what everybody had.
//!
//! Promise: where there is a version, the newest one is named again before anything is changed. If it is that of a
//! first change that was interrupted, the change is made by this. Reading changes nothing.
//!
//! Not promised: that nothing is lost if the pointer is lost while a change or a collection of garbage is under way. The
//! change may have begun before others made theirs, and the collection remove what the restored version needs.

use futures::{StreamExt as _, TryStreamExt as _, stream};

use crate::error::ReadError;
use crate::format::{Id, Node, Pointer, Version};
use crate::namespace::{Namespace, REQUESTS_MAX, Snapshot};
use crate::objects::Objects;

impl<O: Objects> Namespace<'_, O> {
    /// The newest snapshot and its version, for who is going to change it; `None` if nothing was ever written. Where
    /// the pointer is missing, it is the version that has the highest number: see [`Snapshot::is_without_pointer`].
    ///
    /// # Errors
    /// [`ReadError`] when something cannot be read or listed, or the pointer's root is not that of its version;
    /// [`ReadError::SeveralNewest`] when nobody knows which version was the newest.
    pub async fn load_to_change(&self) -> Result<Option<(Snapshot, Version)>, ReadError> {
        if let Some(snapshot) = self.load(None).await? {
            let version = self.version_of(&snapshot).await?;
            return Ok(version.map(|version| (snapshot, version)));
        }
        let Some(newest) = self.highest_version().await? else { return Ok(None) };
        let root = match newest.root {
            None => None,
            Some(id) => Some((id, self.root_node(id).await?)),
        };
        Ok(Some((Snapshot { version: Some(newest.id), root, etag: None }, newest)))
    }

    /// The pointer that names this version.
    pub(crate) async fn pointer_to(&self, version: &Version) -> Result<Pointer, ReadError> {
        let root = match version.root {
            None => None,
            Some(id) => Some(self.bytes(id).await?),
        };
        Ok(Pointer { version: version.id, root })
    }

    /// Of all versions that were ever written and are still there the one with the highest number.
    async fn highest_version(&self) -> Result<Option<Version>, ReadError> {
        let ids = self.list().await?.into_keys();
        let mut read = stream::iter(ids)
            .map(|id| async move { self.version_or_node(id).await })
            .buffer_unordered(REQUESTS_MAX);
        let (mut highest, mut same) = (None::<Version>, 0);
        while let Some(version) = read.try_next().await? {
            let Some(version) = version else { continue };
            let before = highest.as_ref().map_or(0, |of| of.number);
            if version.number > before {
                (highest, same) = (Some(version), 1);
            } else if version.number == before {
                same += 1;
            }
        }
        match highest {
            Some(Version { number, .. }) if same > 1 => {
                let object = self.pointer_key();
                Err(ReadError::SeveralNewest { object, versions: same, number })
            }
            highest => Ok(highest),
        }
    }

    /// The version of this id; `None` if it is a node.
    async fn version_or_node(&self, id: Id) -> Result<Option<Version>, ReadError> {
        let (object, bytes) = (self.object_key(id), self.bytes(id).await?);
        match Version::read(&object, &bytes) {
            Ok(version) => Ok(Some(version)),
            Err(error) => Node::read(&object, &bytes).map(|_| None).map_err(|_| error),
        }
    }
}
