//! Topics as `lastmile apply` writes them.

use std::path::Path;

use adapters::live_topics::{PUBLISHERS, SETTINGS, TopicObjects};
use adapters::storage::{Fetched, StoredObject};
use delivery::topic_object::{Content, DeploymentObject, DeploymentObjects, TopicObject};
use dialects::Source;

/// Adds the subscriptions of this text, and replaces those with the same names. Publishers and
/// policies are replaced by those of the text.
///
/// # Panics
/// If the text has errors, or an object cannot be written.
pub async fn apply(folder: &StoredObject, text: &str) {
    let read = dialects::read(&[Source { name: "test", text }]);
    let read = read.into_result().expect("the file is right");
    let objects = TopicObjects::below(folder);
    let wanted = DeploymentObjects::new("test", &read);
    let put = async |key: String, text: String| {
        objects.storage().put(&key, text.into_bytes()).await.expect("an object is written");
    };
    for (name, topic) in wanted.topics {
        let key = objects.key_of(&name);
        let mut object = current(&objects, &key).await;
        object.topic = topic.topic.or(object.topic);
        object.subscriptions.extend(topic.subscriptions);
        put(key, object.to_text().expect("an object")).await;
    }
    put(objects.key(PUBLISHERS), wanted.publishers.to_text()).await;
    put(objects.key(SETTINGS), wanted.settings.to_text()).await;
}

/// Applies this text to a local folder.
///
/// # Panics
/// As [`apply`].
pub async fn apply_in(folder: &Path, text: &str) {
    apply(&StoredObject::file(folder), text).await;
}

/// Returns the object of this key, or an empty one.
async fn current(objects: &TopicObjects, key: &str) -> TopicObject<'static> {
    match objects.get(key, None).await.expect("an object can be read") {
        Fetched::Changed { bytes, .. } => match Content::parse(&bytes).expect("an object") {
            Content::Topic(object) => object.into_owned(),
            Content::Removed(_) => TopicObject::default(),
        },
        Fetched::Missing | Fetched::Unchanged => TopicObject::default(),
    }
}
