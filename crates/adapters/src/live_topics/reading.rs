//! The version of a topic that is used, by the answer to a request for its object.

use delivery::ports::Clock;
use delivery::subscription::name::TopicName;
use delivery::topic_object::ObjectError;

use super::earlier::{Earlier, newest_usable};
use super::kept::Kept;
use super::parsing::{Object, Wanted};
use super::{LOOK_EVERY_MS, LiveTopics, UNKNOWN_EVERY_MS};

/// A topic whose newest object cannot be used is requested again after this long if something earlier is in use.
const BROKEN_EVERY_MS: u64 = LOOK_EVERY_MS;
/// The problem of a topic that is not there and that nobody removed with `apply`.
const GONE: &str = "its object is gone, and it was not removed";

/// The result of a request for a topic.
pub(super) enum Read {
    /// The topic as it is used from now on, and why the newest object is not used, if so.
    Known(Kept, Option<String>),
    /// There is no object, and never was one.
    Nothing,
    /// Nothing is known of it.
    Unknown(String),
}

impl<C: Clock + Send + Sync> LiveTopics<C> {
    /// Requests a topic's object.
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
            // The mark of a removed topic expires.
            Object::Missing if kept.as_ref().is_none_or(|kept| kept.topic.is_none()) => {
                self.missing(name).await
            }
            Object::Missing => self.unusable(name, kept, None, GONE.to_owned()).await,
            Object::Unusable { etag, problem } => self.unusable(name, kept, etag, problem).await,
            Object::NoMemory => self.without_memory(name, kept),
            // The object may be right, and an earlier version may lack a subscription.
            Object::Failed(error) if kept.is_none() => {
                Read::Unknown(report(name, &error.to_string(), false))
            }
            Object::Failed(error) => self.unusable(name, kept, None, error.to_string()).await,
        };
        (name, read)
    }

    /// Topics in use take the memory that the newest object needs.
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

    /// The object is the one that was read before: it can be used, or still cannot be.
    fn unchanged(&self, name: &TopicName, kept: Option<Kept>) -> Read {
        match kept {
            Some(kept) if kept.unusable_etag.is_none() => {
                Read::Known(kept.confirmed_at(self.clock.now_ms()), None)
            }
            Some(kept) => {
                let problem = report(name, "its newest version still cannot be used", true);
                Read::Known(Kept { not_before_ms: self.broken_until_ms(), ..kept }, Some(problem))
            }
            None => Read::Unknown(report(name, "storage did not send it", false)),
        }
    }

    /// There is no object. If there was one, it was not removed with `apply`, which leaves a mark.
    async fn missing(&self, name: &TopicName) -> Read {
        match self.earlier(name).await {
            Ok(Earlier::Version(version)) => {
                // The mark of a removal may be what somebody deleted.
                let problem = version.topic.is_some().then(|| report(name, GONE, true));
                Read::Known(Kept { not_before_ms: self.broken_until_ms(), ..version }, problem)
            }
            Ok(Earlier::NoneUsable) => Read::Unknown(report(name, GONE, false)),
            Ok(Earlier::None) => Read::Nothing,
            Err(error) => Read::Unknown(report(name, &error, false)),
        }
    }

    /// The newest object cannot be read or used: what was read before is used, or the newest earlier version that can be.
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

    /// The newest earlier version of a topic that can be used.
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

/// Logs that the newest state of a topic cannot be used; returns what is wrong.
fn report(name: &TopicName, why: &str, last_good_kept: bool) -> String {
    let problem = format!("the topic {name} cannot be read: {why}");
    tracing::error!(problem, last_good_kept, "subscriptions.broken");
    problem
}
