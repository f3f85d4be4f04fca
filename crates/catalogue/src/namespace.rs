//! The objects of one namespace: where they are, and each checked when it is read.

use std::sync::Arc;

use delivery::subscription::name::segment;
use futures::{StreamExt as _, TryStreamExt as _, stream};

use crate::cache::NodeCache;
use crate::error::ReadError;
use crate::format::{Entry, Id, Limits, Node, Pointer, Reference, Version, damaged};
use crate::objects::{Fetched, Objects};

/// The most requests of one call that are under way at once.
pub(crate) const REQUESTS_MAX: usize = 16;

/// One namespace of a catalogue: see [`Namespace::load`], [`Namespace::commit`] and
/// [`Namespace::collect_garbage`].
#[derive(Debug)]
pub struct Namespace<'a, O> {
    pub(crate) objects: &'a O,
    pub(crate) limits: Limits,
    pub(crate) name: String,
    cache: &'a NodeCache,
    folder: String,
}

/// The entries of a namespace at one time. Its nodes can be read for 30 days after a newer version took its
/// place.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    pub(crate) version: Option<Id>,
    pub(crate) root: Option<(Id, Arc<Node>)>,
    /// That of the pointer.
    pub(crate) etag: Option<String>,
}

impl Snapshot {
    /// The id of its version; `None` before the first commit.
    #[must_use]
    pub fn version(&self) -> Option<Id> {
        self.version
    }

    /// Of one from [`Namespace::load_to_change`], whether no pointer names it: readers do not see it until the
    /// next commit, which writes the pointer first, even if it has nothing to change.
    #[must_use]
    pub fn is_without_pointer(&self) -> bool {
        self.version.is_some() && self.etag.is_none()
    }

    /// The root node, as if a parent described it.
    pub(crate) fn root(&self) -> Option<(&Arc<Node>, Reference)> {
        let (id, node) = self.root.as_ref()?;
        let first = node.first()?.clone();
        Some((node, Reference { id: *id, level: node.level(), first, before: None }))
    }
}

impl<'a, O: Objects> Namespace<'a, O> {
    /// The namespace of this name.
    #[must_use]
    pub fn new(objects: &'a O, cache: &'a NodeCache, name: &str) -> Self {
        let folder = format!("namespaces/{}", segment(name));
        Self { objects, limits: Limits::STANDARD, name: name.to_owned(), cache, folder }
    }

    /// The newest snapshot; `None` before the first commit. `known` is the one that the caller has: if it is
    /// still the newest, storage sends no content, and the same one is returned.
    ///
    /// # Errors
    /// [`ReadError`] when the pointer cannot be read.
    pub async fn load(&self, known: Option<&Snapshot>) -> Result<Option<Snapshot>, ReadError> {
        let object = self.pointer_key();
        let known_etag = known.and_then(|known| known.etag.as_deref());
        let (bytes, etag) = match self.objects.get(&object, known_etag).await? {
            Fetched::Missing => return Ok(None),
            Fetched::Unchanged => return Ok(known.cloned()),
            Fetched::Changed { bytes, etag } => (bytes, etag),
        };
        let pointer = Pointer::read(&object, &bytes)?;
        let root = match pointer.root {
            None => None,
            Some(root) => Some((Id::of(&root), Arc::new(Node::read(&object, &root)?))),
        };
        Ok(Some(Snapshot { version: Some(pointer.version), root, etag: Some(etag) }))
    }

    /// The snapshot of a version, by its id: see [`Namespace::history`].
    ///
    /// # Errors
    /// [`ReadError`] when it cannot be read.
    pub async fn of_version(&self, id: Id) -> Result<Snapshot, ReadError> {
        let root = match self.version(id).await?.root {
            None => None,
            Some(root) => Some((root, self.root_node(root).await?)),
        };
        Ok(Snapshot { version: Some(id), root, etag: None })
    }

    /// The version that a snapshot is of; `None` before the first commit.
    ///
    /// # Errors
    /// [`ReadError`] when it cannot be read, or the snapshot's root is another than its own: the pointer is damaged.
    pub async fn version_of(&self, snapshot: &Snapshot) -> Result<Option<Version>, ReadError> {
        let Some(id) = snapshot.version else { return Ok(None) };
        let version = self.version(id).await?;
        if version.root == snapshot.root.as_ref().map(|(id, _)| *id) {
            return Ok(Some(version));
        }
        Err(damaged(&self.pointer_key(), format!("its root is not that of its version, {id}")))
    }

    /// The version of this id.
    pub(crate) async fn version(&self, id: Id) -> Result<Version, ReadError> {
        let bytes = self.bytes(id).await?;
        Version::read(&self.object_key(id), &bytes)
    }

    /// A root node by its id alone.
    pub(crate) async fn root_node(&self, id: Id) -> Result<Arc<Node>, ReadError> {
        if let Some(node) = self.cache.get(id) {
            return Ok(node);
        }
        let bytes = self.bytes(id).await?;
        let node = Arc::new(Node::read(&self.object_key(id), &bytes)?);
        self.cache.insert(id, node.clone(), bytes.len());
        Ok(node)
    }

    /// The nodes of these places, in their order.
    pub(crate) async fn nodes(&self, places: Vec<Reference>) -> Result<Vec<Arc<Node>>, ReadError> {
        stream::iter(places)
            .map(|place| self.node(place))
            .buffered(REQUESTS_MAX)
            .try_collect()
            .await
    }

    /// The node of this place.
    pub(crate) async fn node(&self, place: Reference) -> Result<Arc<Node>, ReadError> {
        let node = self.root_node(place.id).await?;
        // Also where it was cached: the same node in another place may be damage.
        node.check(&self.object_key(place.id), &place)?;
        Ok(node)
    }

    pub(crate) async fn bytes(&self, id: Id) -> Result<Vec<u8>, ReadError> {
        let object = self.object_key(id);
        let bytes = match self.objects.get(&object, None).await? {
            Fetched::Changed { bytes, .. } => bytes,
            Fetched::Missing | Fetched::Unchanged => return Err(ReadError::Missing { object }),
        };
        let found = Id::of(&bytes);
        if found == id {
            return Ok(bytes);
        }
        Err(damaged(&object, format!("the SHA-256 of its {} bytes is {found}", bytes.len())))
    }

    pub(crate) fn pointer_key(&self) -> String {
        format!("{}/pointer", self.folder)
    }

    pub(crate) fn object_key(&self, id: Id) -> String {
        format!("{}{id}", self.objects_prefix())
    }

    /// What the keys of all objects but the pointer begin with.
    pub(crate) fn objects_prefix(&self) -> String {
        format!("{}/objects/", self.folder)
    }
}

/// The entries of a leaf.
pub(crate) fn entries_of(node: &Node) -> &[Entry] {
    match node {
        Node::Leaf(entries) => entries,
        Node::Inner { .. } => &[],
    }
}
