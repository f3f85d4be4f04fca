//! The settings of a deployment, kept fresh.

use std::sync::Arc;

use delivery::subscription::catalogue::Settings;
use delivery::topic_object::{self, DeploymentObject, PublishersObject, SettingsObject};
use futures::FutureExt as _;

use super::UNKNOWN_EVERY_MS;
use super::earlier::{Earlier, newest_usable};
use super::objects::{PUBLISHERS, SETTINGS, TopicObjects};
use crate::storage::{Fetched, StorageError};

/// The next step where nothing is.
const WRITE_IT: &str = "write it with lastmile apply; until then events wait";

/// An object as it was read last.
#[derive(Debug)]
struct Watched<T> {
    /// The newest that can be used.
    good: Option<T>,
    /// The ETag of the object that it was read from.
    etag: Option<String>,
    /// The ETag of a newer object that cannot be used.
    unusable_etag: Option<String>,
    /// The reason why the newest is not used.
    problem: Option<String>,
    /// Nobody has to write it.
    is_optional: bool,
    /// There was no object, and no earlier version of one.
    was_never_there: bool,
    /// Checks its values, once its form is right.
    check: fn(&T) -> Result<(), String>,
}

/// The settings as they were read last.
#[derive(Debug)]
pub(super) struct WatchedSettings {
    settings: Watched<SettingsObject>,
    publishers: Watched<PublishersObject>,
    /// The settings that both state together.
    good: Option<Arc<Settings>>,
    checked_ms: Option<u64>,
    /// One of them was read and is not combined yet: a caller may give up in between.
    are_new: bool,
    /// The reason why the newest are not used.
    problem: Option<String>,
}

impl Default for WatchedSettings {
    fn default() -> Self {
        let (good, checked_ms, are_new, problem) = Default::default();
        let settings = Watched::new(false, |of| {
            topic_object::settings(of, &PublishersObject::default()).map(drop)
        });
        let publishers = Watched::new(true, |of| {
            topic_object::settings(&SettingsObject::default(), of).map(drop)
        });
        Self { settings, publishers, good, checked_ms, are_new, problem }
    }
}

impl WatchedSettings {
    /// The settings in use; the objects are read again if that is due.
    ///
    /// # Errors
    /// Why none are known.
    pub(super) async fn current(
        &mut self,
        objects: &TopicObjects,
        now_ms: u64,
        every_ms: u64,
    ) -> Result<Arc<Settings>, String> {
        // Without any, all records wait, so a repair has to be seen soon.
        let every_ms = if self.good.is_some() { every_ms } else { every_ms.min(UNKNOWN_EVERY_MS) };
        if self.checked_ms.is_none_or(|checked_ms| now_ms.abs_diff(checked_ms) >= every_ms) {
            // Boxed: the future is large, and most invocations read nothing.
            self.refresh(objects, now_ms).boxed().await;
        }
        self.good.clone().ok_or_else(|| self.problem.clone().unwrap_or_default())
    }

    /// The newest settings.
    ///
    /// # Errors
    /// Why they are not known: then no name may count as missing.
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
        // Without its publishers, a deployment would take their events for those of nobody.
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

    /// Reads the object again; returns true if another one is in use now.
    async fn refresh(&mut self, objects: &TopicObjects, name: &str) -> bool {
        let (key, what) = (objects.key(name), format!("{objects}{name}"));
        let known = self.unusable_etag.as_deref().or(self.etag.as_deref());
        let problem = match objects.get(&key, known).await {
            Ok(Fetched::Unchanged) if self.unusable_etag.is_none() => {
                self.problem = None;
                return false;
            }
            Ok(Fetched::Unchanged) => "its newest version still cannot be used".to_owned(),
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
            Ok(Fetched::Missing) if self.was_never_there => return self.is_not_there(&what),
            Ok(Fetched::Missing) => "it does not exist".to_owned(),
            // It may well be right, and an earlier one would be wrong without anyone noticing.
            Err(error) => {
                self.problem = Some(report(&what, &error.to_string(), self.good.is_some()));
                return false;
            }
        };
        if self.good.is_some() {
            self.problem = Some(report(&what, &problem, true));
            return false;
        }
        let (key, this) = (key.as_str(), &*self);
        let request = |id: String| async move {
            match objects.version(key, &id).await {
                Ok(version) => Ok(version.and_then(|of| this.usable(&of.bytes).ok())),
                Err(StorageError::TooLarge { .. }) => Ok(None),
                Err(error) => Err(error.to_string()),
            }
        };
        match newest_usable(objects, key, request).await {
            Ok(Earlier::Version(object)) => {
                self.problem = Some(report(&what, &problem, true));
                self.good = Some(object);
                true
            }
            Ok(Earlier::None) if self.unusable_etag.is_none() => {
                self.was_never_there = true;
                self.is_not_there(&what)
            }
            Ok(Earlier::NoneUsable | Earlier::None) => {
                self.problem = Some(report(&what, &problem, false));
                false
            }
            Err(error) => {
                let problem = format!("{problem}; {error}");
                self.problem = Some(report(&what, &problem, false));
                false
            }
        }
    }

    fn usable(&self, bytes: &[u8]) -> Result<T, String> {
        let object = T::parse(bytes)?;
        (self.check)(&object).map(|()| object)
    }

    /// Nobody has written it yet. A new deployment waits for its first files, which is no error.
    fn is_not_there(&mut self, what: &str) -> bool {
        if self.good.is_none() && !self.is_optional {
            let is_told = self.problem.is_some();
            self.problem = Some(format!("{what} cannot be read: it does not exist: {WRITE_IT}"));
            if !is_told {
                tracing::warn!(source = what, help = WRITE_IT, "subscriptions.missing");
            }
        } else if self.good.is_none() {
            self.problem = None;
        } else {
            self.problem = Some(report(what, "it does not exist", true));
        }
        false
    }
}

/// Logs that something newer cannot be used; returns what is wrong.
fn report(what: &str, why: &str, last_good_kept: bool) -> String {
    let problem = format!("{what} cannot be read: {why}");
    tracing::error!(problem, last_good_kept, "subscriptions.broken");
    problem
}
