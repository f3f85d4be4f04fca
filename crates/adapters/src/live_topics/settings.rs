//! Reads the settings and the publishers of a deployment, and keeps them fresh.
//!
//! Separate from topics because every process needs both objects before its first event. The last
//! usable content stays in use while a newer object is unusable. A process without any content uses
//! the newest usable earlier version.
//!
//! Promises: without usable settings, the result is an error and all events wait.

use std::sync::Arc;

use delivery::subscription::catalogue::Settings;
use delivery::topic_object::{self, DeploymentObject, PublishersObject, SettingsObject};
use futures::FutureExt as _;

use super::UNKNOWN_EVERY_MS;
use super::earlier::{Earlier, newest_usable};
use super::objects::{PUBLISHERS, SETTINGS, TopicObjects};
use crate::storage::{Fetched, StorageError};

/// Advice that is shown if there are no settings.
const WRITE_IT: &str = "create it with lastmile apply; events wait until then";

/// An object that is read repeatedly, with the results of the last read.
#[derive(Debug)]
struct Watched<T> {
    /// The newest usable content of the object.
    good: Option<T>,
    /// The ETag of the version with the usable content.
    etag: Option<String>,
    /// The ETag of a newer version that is unusable.
    unusable_etag: Option<String>,
    /// The reason why the newest version is not used.
    problem: Option<String>,
    /// True if the object may be missing.
    is_optional: bool,
    /// True if neither the object nor an earlier version was found.
    was_never_there: bool,
    /// Validates the values of a well-formed object.
    check: fn(&T) -> Result<(), String>,
}

/// The settings and publishers of a deployment, as they were last read.
#[derive(Debug)]
pub(super) struct WatchedSettings {
    settings: Watched<SettingsObject>,
    publishers: Watched<PublishersObject>,
    /// The settings in use, combined from both objects.
    good: Option<Arc<Settings>>,
    checked_ms: Option<u64>,
    /// True if an object was read but not combined yet. A caller may drop the future between these
    /// steps.
    are_new: bool,
    /// The reason why the newest settings are not used.
    problem: Option<String>,
}

impl Default for WatchedSettings {
    fn default() -> Self {
        let (good, checked_ms, are_new, problem) = Default::default();
        let settings = Watched::new(false, |object| {
            topic_object::settings(object, &PublishersObject::default()).map(drop)
        });
        let publishers = Watched::new(true, |object| {
            topic_object::settings(&SettingsObject::default(), object).map(drop)
        });
        Self { settings, publishers, good, checked_ms, are_new, problem }
    }
}

impl WatchedSettings {
    /// Returns the settings in use. First reads the objects again if that is due.
    ///
    /// # Errors
    /// Fails if no settings are known; the text is the reason.
    pub(super) async fn current(
        &mut self,
        objects: &TopicObjects,
        now_ms: u64,
        every_ms: u64,
    ) -> Result<Arc<Settings>, String> {
        // Without settings all records wait, so look for a repair soon.
        let every_ms = if self.good.is_some() { every_ms } else { every_ms.min(UNKNOWN_EVERY_MS) };
        if self.checked_ms.is_none_or(|checked_ms| now_ms.abs_diff(checked_ms) >= every_ms) {
            // Boxed, because the future is large and most invocations read nothing.
            self.refresh(objects, now_ms).boxed().await;
        }
        self.good.clone().ok_or_else(|| self.problem.clone().unwrap_or_default())
    }

    /// Returns the newest settings.
    ///
    /// # Errors
    /// Fails if the newest settings are unknown. Then no name may count as missing.
    pub(super) async fn newest(
        &mut self,
        objects: &TopicObjects,
        now_ms: u64,
    ) -> Result<Arc<Settings>, String> {
        self.refresh(objects, now_ms).boxed().await;
        match (&self.problem, &self.good) {
            (None, Some(good)) => Ok(Arc::clone(good)),
            (problem, _) => Err(problem.clone().unwrap_or_default()),
        }
    }

    async fn refresh(&mut self, objects: &TopicObjects, now_ms: u64) {
        self.checked_ms = Some(now_ms);
        let Self { settings, publishers, are_new, .. } = self;
        *are_new |= settings.refresh(objects, SETTINGS).await;
        *are_new |= publishers.refresh(objects, PUBLISHERS).await;
        self.problem = settings.problem.clone().or_else(|| publishers.problem.clone());
        // Without the publishers object, events would seem to come from unregistered publishers.
        let is_known = publishers.good.is_some() || publishers.was_never_there;
        let known = settings.good.as_ref().filter(|_| is_known);
        let Some(known) = known.filter(|_| *are_new || self.good.is_none()) else { return };
        *are_new = false;
        let none = PublishersObject::default();
        match topic_object::settings(known, publishers.good.as_ref().unwrap_or(&none)) {
            Ok(combined) => self.good = Some(Arc::new(combined)),
            Err(why) => self.problem = Some(report("the settings", &why, self.good.is_some())),
        }
    }
}

impl<T: DeploymentObject> Watched<T> {
    fn new(is_optional: bool, check: fn(&T) -> Result<(), String>) -> Self {
        let (good, etag, unusable_etag, problem) = Default::default();
        Self { good, etag, unusable_etag, problem, is_optional, was_never_there: false, check }
    }

    /// Reads the object again. Returns true if the content in use has changed.
    async fn refresh(&mut self, objects: &TopicObjects, name: &str) -> bool {
        let (key, source) = (objects.key(name), format!("{objects}{name}"));
        let known = self.unusable_etag.as_deref().or(self.etag.as_deref());
        let problem = match objects.get(&key, known).await {
            Ok(Fetched::Unchanged) if self.unusable_etag.is_none() => {
                self.problem = None;
                return false;
            }
            Ok(Fetched::Unchanged) => "its newest version is still not usable".to_owned(),
            Ok(Fetched::Changed { bytes, etag, .. }) => match self.usable(&bytes) {
                Ok(object) => {
                    (self.good, self.etag) = (Some(object), Some(etag));
                    (self.unusable_etag, self.problem) = (None, None);
                    return true;
                }
                Err(why) => {
                    self.unusable_etag = Some(etag);
                    why
                }
            },
            Ok(Fetched::Missing) if self.was_never_there => return self.is_not_there(&source),
            Ok(Fetched::Missing) => "it does not exist".to_owned(),
            // Keep the current content, because the newest version may be usable, and an earlier
            // one would be outdated without notice.
            Err(error) => {
                self.problem = Some(report(&source, &error.to_string(), self.good.is_some()));
                return false;
            }
        };
        if self.good.is_some() {
            self.problem = Some(report(&source, &problem, true));
            return false;
        }
        let (key, this) = (key.as_str(), &*self);
        let request = |id: String| async move {
            match objects.version(key, &id).await {
                Ok(version) => Ok(version.and_then(|stored| this.usable(&stored.bytes).ok())),
                Err(StorageError::TooLarge { .. }) => Ok(None),
                Err(error) => Err(error.to_string()),
            }
        };
        match newest_usable(objects, key, request).await {
            Ok(Earlier::Version(object)) => {
                self.problem = Some(report(&source, &problem, true));
                self.good = Some(object);
                true
            }
            Ok(Earlier::None) if self.unusable_etag.is_none() => {
                self.was_never_there = true;
                self.is_not_there(&source)
            }
            Ok(Earlier::NoneUsable | Earlier::None) => {
                self.problem = Some(report(&source, &problem, false));
                false
            }
            Err(error) => {
                let problem = format!("{problem}; {error}");
                self.problem = Some(report(&source, &problem, false));
                false
            }
        }
    }

    fn usable(&self, bytes: &[u8]) -> Result<T, String> {
        let object = T::parse(bytes)?;
        (self.check)(&object).map(|()| object)
    }

    /// Records that an object is missing and never existed. Always returns false: the content in
    /// use stays the same. A new deployment waits for its first files, which is not an error. The
    /// line is logged only once; otherwise, every look would repeat it.
    fn is_not_there(&mut self, source: &str) -> bool {
        if self.good.is_none() && !self.is_optional {
            let was_missing = self.problem.is_some();
            self.problem = Some(format!("{source} does not exist: {WRITE_IT}"));
            if !was_missing {
                tracing::warn!(source, help = WRITE_IT, "subscriptions.missing");
            }
        } else if self.good.is_none() {
            self.problem = None;
        } else {
            self.problem = Some(report(source, "it does not exist", true));
        }
        false
    }
}

/// Logs that a newer object is unusable, and returns the problem as text. `last_good_kept` is true
/// if the last usable content stays in use.
fn report(source: &str, why: &str, last_good_kept: bool) -> String {
    let problem = format!("{source} cannot be read: {why}");
    tracing::error!(problem, last_good_kept, "subscriptions.broken");
    problem
}
