//! Parses the positional arguments of `explain`: the same files as for `check`, and an optional
//! name of a topic or subscription.
//!
//! Separate because an argument may be a file or a name. It is a file if the path exists, or has
//! the extension of subscription files. With `--to` or `--stack`, a valid name of a topic or
//! subscription is a name even if a folder with that name exists.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use delivery::subscription::name::{SubscriptionName, TopicName};

use super::Arguments;
use crate::operations::files::is_of_subscriptions;
use crate::operations::place::Place;
use crate::terminal::text;
use crate::terminal::usage::usage_error;

/// The name of a topic, or of one of its subscriptions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) topic: TopicName,
    /// The subscription; `None` for the whole topic.
    pub(super) subscription: Option<SubscriptionName>,
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(name) = text.parse::<SubscriptionName>() {
            return Ok(name.into());
        }
        let topic = text.parse::<TopicName>();
        let topic = topic.map_err(|_| "expected namespace/topic or namespace/topic/name")?;
        Ok(topic.into())
    }
}

impl From<SubscriptionName> for Named {
    fn from(name: SubscriptionName) -> Self {
        Self { topic: name.topic.clone(), subscription: Some(name) }
    }
}

impl From<TopicName> for Named {
    fn from(topic: TopicName) -> Self {
        Self { topic, subscription: None }
    }
}

/// The subscriptions that the arguments of `explain` name.
pub(super) struct Asked {
    /// The files with the subscriptions; empty for a deployment.
    pub(super) files: Vec<PathBuf>,
    /// The topic or subscription; `None` for all subscriptions.
    pub(super) name: Option<Named>,
}

impl Asked {
    /// Sorts the arguments into files and at most one name.
    ///
    /// # Errors
    /// A usage error for an argument that is neither a file nor a name, for several names, and for
    /// files that are given together with `--to`.
    pub(super) fn from_arguments(arguments: &Arguments, place: &Place) -> anyhow::Result<Self> {
        let has_place = place.has_subscriptions();
        let mut files = Vec::new();
        let subscription = arguments.subscription.clone().map(Named::from);
        let mut names: Vec<Named> = subscription.into_iter().collect();
        names.extend(arguments.topic.clone().map(Named::from));
        for path in &arguments.files_or_names {
            match name_of(path, has_place)? {
                Some(name) => names.push(name),
                None => files.push(path.clone()),
            }
        }
        for (index, path) in arguments.more_files.iter().enumerate() {
            // In `-f FILE NAME`, the option consumes all following arguments, so the last one may
            // be a name.
            let may_be_name = index > 0 && !path.exists();
            match name_of(path, has_place).ok().flatten().filter(|_| may_be_name) {
                Some(name) => names.push(name),
                None => files.push(path.clone()),
            }
        }
        if names.len() > 1 {
            return Err(usage_error("specify only one topic or subscription"));
        }
        place.check_beside_files(&files)?;
        let name = names.pop();
        if let (Some(Named { topic, .. }), true, false) = (&name, files.is_empty(), has_place) {
            return Err(usage_error(format!(
                "{topic} is the name of a topic: specify --to, --stack, or the files that contain \
                 the topic"
            )));
        }
        Ok(Self { files, name })
    }
}

/// Parses an argument as a name; `None` if it is a file.
///
/// # Errors
/// A usage error if the argument is neither a file nor a valid name.
fn name_of(path: &Path, has_place: bool) -> anyhow::Result<Option<Named>> {
    let is_file = path.is_file() || is_of_subscriptions(path);
    if is_file || (path.exists() && !has_place) {
        return Ok(None);
    }
    match path.to_str().unwrap_or_default().parse() {
        Ok(name) => Ok(Some(name)),
        Err(_) if path.exists() => Ok(None),
        Err(expected) => Err(usage_error(format!(
            "{} is neither a file nor a name: {expected}",
            text::path(path)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_a_file_if_it_is_there_or_looks_like_one_and_a_name_otherwise() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("orders")).expect("a folder");
        std::fs::write(at("plain"), "").expect("a file");
        let is_name =
            |path: &Path, has_place| name_of(path, has_place).map(|name| name.is_some()).ok();
        for has_place in [false, true] {
            for (path, expected) in [
                (at("orders"), Some(false)),
                (at("plain"), Some(false)),
                ("shop/orders".into(), Some(true)),
                ("shop/orders/billing".into(), Some(true)),
                ("shop/orders.yaml".into(), Some(false)),
                ("nowhere.json".into(), Some(false)),
                ("shop".into(), None),
                ("a/b/c/d".into(), None),
            ] {
                assert_eq!(is_name(&path, has_place), expected, "{path:?}");
            }
        }
        // This path is a valid name of a topic. It is also a folder, because tests run in the
        // folder of the crate.
        let both = Path::new("src/commands");
        assert_eq!((is_name(both, false), is_name(both, true)), (Some(false), Some(true)));
    }
}
