//! Chooses the version of a topic to use, depending on the result of a request.
//!
//! Separate from requesting and parsing because this is the policy for failures. An unusable object
//! never replaces a usable version. If storage fails and no version is cached, no earlier version
//! is used, because it may lack a subscription.
//!
//! Promises: each problem is logged, and the request is repeated after a fixed time.

use delivery::ports::Clock;
use delivery::subscription::name::TopicName;
use delivery::topic_object::ObjectError;

use super::earlier::{Earlier, newest_usable};
use super::kept::Kept;
use super::parsing::{Object, Wanted};
use super::{LOOK_EVERY_MS, LiveTopics, UNKNOWN_EVERY_MS};

/// Interval between requests for a topic whose newest object is unusable while an earlier version
/// is in use.
const BROKEN_EVERY_MS: u64 = LOOK_EVERY_MS;
/// The problem of a topic whose object was deleted, but not by `lastmile apply`.
const GONE: &str = "its object was deleted without `lastmile apply --prune`";

/// The result of reading a topic.
pub(super) enum Read {
    /// The version to use. The second value is the reason why it is not the newest version; `None`
    /// if it is the newest.
    Known(Kept, Option<String>),
    /// The topic has no object, and never had one.
    Nothing,
    /// No usable version of the topic is known. The text is the reason.
    Unknown(String),
}

impl<C: Clock + Send + Sync> LiveTopics<C> {
    /// Requests the object of a topic, and chooses the version to use.
    pub(super) async fn read<'n>(
        &self,
        name: &'n TopicName,
        mut kept: Option<Kept>,
    ) -> (&'n TopicName, Read) {
        let known = kept.as_ref().and_then(|kept| kept.unusable_etag.clone().or(kept.etag.clone()));
        let object = self.request(name, Wanted::Newest(known.as_deref()), &mut kept).await;
        let read = match object {
            Object::Parsed(newest) => Read::Known(newest, None),
            Object::Unchanged => self.unchanged(name, kept),
            // The marker of a removed topic expires, so a missing object is normal.
            Object::Missing if kept.as_ref().is_none_or(|kept| kept.topic.is_none()) => {
                self.missing(name).await
            }
            Object::Missing => self.unusable(name, kept, None, GONE.to_owned()).await,
            Object::Unusable { etag, problem } => self.unusable(name, kept, etag, problem).await,
            Object::NoMemory => self.without_memory(name, kept),
            // The newest object may be usable, and an earlier version may lack a subscription.
            Object::Failed(error) if kept.is_none() => {
                Read::Unknown(report(name, &error.to_string(), false))
            }
            Object::Failed(error) => self.unusable(name, kept, None, error.to_string()).await,
        };
        (name, read)
    }

    /// Returns the version to use if topics in use occupy the memory that the newest object needs.
    fn without_memory(&self, name: &TopicName, kept: Option<Kept>) -> Read {
        let problem = ObjectError::NoMemory.to_string();
        match kept {
            Some(kept) => {
                let not_before_ms = self.clock.now_ms().saturating_add(UNKNOWN_EVERY_MS);
                let problem = report(name, &problem, true);
                Read::Known(Kept { not_before_ms, ..kept }, Some(problem))
            }
            None => Read::Unknown(report(name, &problem, false)),
        }
    }

    /// Returns the version to use if the object is unchanged: the cached one. An object that was
    /// unusable at the last read is still unusable.
    fn unchanged(&self, name: &TopicName, kept: Option<Kept>) -> Read {
        match kept {
            Some(kept) if kept.unusable_etag.is_none() => {
                Read::Known(kept.confirmed_at(self.clock.now_ms()), None)
            }
            Some(kept) => {
                let problem = report(name, "its newest version is still not usable", true);
                Read::Known(Kept { not_before_ms: self.broken_until_ms(), ..kept }, Some(problem))
            }
            None => Read::Unknown(report(name, "storage did not return its content", false)),
        }
    }

    /// Returns the version to use if the topic has no object. An earlier version shows that the
    /// object was deleted without `apply`, which would leave a marker.
    async fn missing(&self, name: &TopicName) -> Read {
        match self.earlier(name).await {
            Ok(Earlier::Version(version)) => {
                // The deleted object may have been the marker of a removed topic.
                let problem = version.topic.is_some().then(|| report(name, GONE, true));
                Read::Known(Kept { not_before_ms: self.broken_until_ms(), ..version }, problem)
            }
            Ok(Earlier::NoneUsable) => Read::Unknown(report(name, GONE, false)),
            Ok(Earlier::None) => Read::Nothing,
            Err(error) => Read::Unknown(report(name, &error, false)),
        }
    }

    /// Returns the version to use if the newest object cannot be read or used: the cached version,
    /// otherwise the newest usable earlier version.
    async fn unusable(
        &self,
        name: &TopicName,
        kept: Option<Kept>,
        etag: Option<String>,
        problem: String,
    ) -> Read {
        let kept = match kept {
            Some(kept) => Ok(Some(kept)),
            None => self.earlier(name).await.map(|earlier| match earlier {
                Earlier::Version(version) => Some(version),
                Earlier::NoneUsable | Earlier::None => None,
            }),
        };
        match kept {
            Ok(Some(kept)) => {
                let problem = report(name, &problem, true);
                let unusable_etag = etag.or(kept.unusable_etag);
                let not_before_ms = self.broken_until_ms();
                Read::Known(Kept { unusable_etag, not_before_ms, ..kept }, Some(problem))
            }
            Ok(None) => Read::Unknown(report(name, &problem, false)),
            Err(error) => Read::Unknown(report(name, &format!("{problem}; {error}"), false)),
        }
    }

    /// Returns the newest usable earlier version of a topic.
    async fn earlier(&self, name: &TopicName) -> Result<Earlier<Kept>, String> {
        let request = |id: String| async move {
            match self.request(name, Wanted::Earlier(&id), &mut None).await {
                Object::Parsed(version) => Ok(Some(version)),
                Object::Unusable { .. } | Object::Missing | Object::Unchanged => Ok(None),
                Object::NoMemory => Err(ObjectError::NoMemory.to_string()),
                Object::Failed(error) => Err(error.to_string()),
            }
        };
        newest_usable(&self.objects, &self.objects.key_of(name), request).await
    }

    fn broken_until_ms(&self) -> u64 {
        self.clock.now_ms().saturating_add(BROKEN_EVERY_MS)
    }
}

/// Logs that the newest state of a topic is unusable, and returns the problem as text.
/// `last_good_kept` is true if an earlier version stays in use.
fn report(name: &TopicName, why: &str, last_good_kept: bool) -> String {
    let problem = format!("the topic {name} cannot be read: {why}");
    tracing::error!(problem, last_good_kept, "subscriptions.broken");
    problem
}
