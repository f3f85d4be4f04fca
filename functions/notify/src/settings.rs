//! Reads the settings of the function once, at cold start. The function does not start if a setting
//! is missing.

use adapters::settings::DEAD_LETTER_CONTAINER;
use delivery::subscription::sink::Container;
use thiserror::Error;

/// Name of the environment variable with the URL of the queue of S3's reports.
pub const REPORTS_QUEUE_URL: &str = "REPORTS_QUEUE_URL";
/// Name of the environment variable with the ARN of the SNS topic for messages about causes.
pub const MESSAGES_TOPIC_ARN: &str = "MESSAGES_TOPIC_ARN";

/// The settings of the notify function, as read from the environment variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifySettings {
    pub(crate) queue_url: String,
    pub(crate) topic_arn: String,
    /// Container in which the dead letters are stored.
    pub container: Container,
}

/// The name of an environment variable that is required, but not set or empty.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the environment variable {0} is not set; infra/notify.yaml sets it")]
pub struct Missing(&'static str);

impl NotifySettings {
    /// Reads the settings with `lookup`.
    ///
    /// # Errors
    /// [`Missing`] if a required setting is missing or empty.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Missing> {
        let optional = |name| lookup(name).filter(|value| !value.is_empty());
        let required = |name| optional(name).ok_or(Missing(name));
        Ok(Self {
            queue_url: required(REPORTS_QUEUE_URL)?,
            topic_arn: required(MESSAGES_TOPIC_ARN)?,
            container: Container {
                bucket: required(DEAD_LETTER_CONTAINER)?,
                prefix: String::new(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_setting_is_named() {
        let all =
            [(REPORTS_QUEUE_URL, "q"), (MESSAGES_TOPIC_ARN, "t"), (DEAD_LETTER_CONTAINER, "b")];
        let lookup = |without: &'static str| {
            move |name: &str| {
                let found = all.iter().find(|(known, _)| *known == name && name != without);
                found.map(|(_, value)| (*value).to_owned())
            }
        };
        let read = NotifySettings::read(lookup("")).unwrap();
        assert_eq!(read.container.to_string(), "b");
        for (name, _) in all {
            assert_eq!(NotifySettings::read(lookup(name)), Err(Missing(name)));
        }
    }
}
