//! [`Sink`]: where the dead letters of a subscription are sent or stored.
//!
//! This module is separate because documents of three dialects name sinks. `machine::follow_up`
//! decides how a dead letter is sent to an address or a topic.

use std::fmt;
use std::str::FromStr;

use url::Url;

use crate::subscription::name::{RESERVED, TopicName};

/// The recipient of a subscription's dead letters, or the storage for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sink {
    /// Dead letters are stored in the container of the deployment.
    DefaultContainer,
    /// Dead letters are stored in another container.
    Container(Container),
    /// Dead letters are sent to an SQS queue outside the deployment.
    Queue(SinkQueue),
    /// Each dead letter is delivered to an HTTP endpoint, with its own attempts.
    Address(Url),
    /// Dead letters are published to a topic, whose subscriptions receive them.
    Topic(TopicName),
    /// Dead letters are dropped and counted, with a warning in the log.
    None,
}

/// A bucket for dead letters, and the prefix of their keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// The name of the S3 bucket.
    pub bucket: String,
    /// The prefix of every key, without slashes at its ends; empty if there is none.
    pub prefix: String,
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.bucket)?;
        if self.prefix.is_empty() { Ok(()) } else { write!(f, "/{}", self.prefix) }
    }
}

impl FromStr for Container {
    type Err = String;

    /// Parses `bucket` or `bucket/prefix`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (bucket, prefix) = text.split_once('/').unwrap_or((text, ""));
        if bucket.is_empty() {
            return Err(format!("\"{text}\" is not a container: expected bucket or bucket/prefix"));
        }
        Ok(Self { bucket: bucket.to_owned(), prefix: prefix.trim_matches('/').to_owned() })
    }
}

/// Checks that no folder of a prefix is reserved, such as `_replays`. The functions' IAM roles deny
/// access to reserved folders, and different lifecycle rules expire objects there.
///
/// # Errors
/// Fails if a folder is reserved. The error names the folder and the rule.
pub fn check_prefix(prefix: &str) -> Result<(), String> {
    match prefix.split('/').find(|folder| folder.starts_with(RESERVED)) {
        Some(folder) => Err(format!(
            "the folder \"{folder}\" in the prefix begins with {RESERVED}, which is reserved; use \
             a prefix such as letters/shop"
        )),
        None => Ok(()),
    }
}

/// An SQS queue for dead letters, identified by its URL without the scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkQueue {
    host: String,
    account: String,
    name: String,
}

/// Maximum length of a queue's name in bytes.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html>
const NAME_MAX_BYTES: usize = 80;
/// Number of digits of an AWS account id.
const ACCOUNT_DIGITS: usize = 12;

impl SinkQueue {
    /// Returns the URL of the queue. Only the URL of a queue on the local machine uses plain HTTP.
    #[must_use]
    pub fn url(&self) -> String {
        let name = self.host.rsplit_once(':').map_or(self.host.as_str(), |(name, _)| name);
        let is_here = name == "localhost"
            || name.parse().is_ok_and(|address: std::net::Ipv4Addr| address.is_loopback());
        format!("{}://{self}", if is_here { "http" } else { "https" })
    }

    /// Returns true if this URL identifies the queue. Only account and name are compared, because a
    /// region has several host names.
    #[must_use]
    pub fn is_at(&self, url: &str) -> bool {
        let mut parts = url.rsplit('/');
        (parts.next(), parts.next()) == (Some(self.name.as_str()), Some(self.account.as_str()))
    }

    /// Returns the ARN of the queue; `None` if the host does not belong to AWS.
    #[must_use]
    pub fn arn(&self) -> Option<String> {
        let (region, suffix) = self.host.strip_prefix("sqs.")?.split_once('.')?;
        let partition = match suffix {
            "amazonaws.com" if region.starts_with("us-gov-") => "aws-us-gov",
            "amazonaws.com" => "aws",
            "amazonaws.com.cn" => "aws-cn",
            _ => return None,
        };
        Some(format!("arn:{partition}:sqs:{region}:{}:{}", self.account, self.name))
    }
}

impl fmt::Display for SinkQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.host, self.account, self.name)
    }
}

impl FromStr for SinkQueue {
    type Err = String;

    /// Parses `host/account/name`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split('/');
        let (Some(host), Some(account), Some(name), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(format!(
                "\"{text}\" is not a queue: expected host/account/name, which is the queue URL \
                 without https://"
            ));
        };
        if name.ends_with(".fifo") {
            return Err(format!(
                "{name} is a FIFO queue, in which one dead letter could block later ones; use a \
                 standard queue"
            ));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || name.len() > NAME_MAX_BYTES || !name.chars().all(plain) {
            return Err(format!(
                "\"{name}\" is not the name of a queue: expected 1 to {NAME_MAX_BYTES} letters, digits, hyphens and _"
            ));
        }
        if account.len() != ACCOUNT_DIGITS || !account.chars().all(|c| c.is_ascii_digit()) {
            return Err(format!(
                "\"{account}\" is not an account: expected {ACCOUNT_DIGITS} digits"
            ));
        }
        let of_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':');
        if host.is_empty() || !host.chars().all(of_host) {
            return Err(format!(
                "\"{host}\" is not the host of a queue, such as sqs.eu-west-1.amazonaws.com"
            ));
        }
        Ok(Self { host: host.to_owned(), account: account.to_owned(), name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_a_bucket_and_perhaps_a_prefix() {
        for (text, bucket, prefix) in [("b", "b", ""), ("b/", "b", ""), ("b/x/y/", "b", "x/y")] {
            let container: Container = text.parse().unwrap();
            assert_eq!((container.bucket.as_str(), container.prefix.as_str()), (bucket, prefix));
        }
        assert!("/x".parse::<Container>().is_err());
    }

    #[test]
    fn a_prefix_has_no_reserved_folder() {
        for prefix in ["", "letters", "letters/shop", "a_b/c_"] {
            assert_eq!(check_prefix(prefix), Ok(()), "{prefix}");
        }
        for prefix in ["_replays", "_dismissed/x", "letters/_replays", "_unknown", "a/_"] {
            let error = check_prefix(prefix).expect_err(prefix);
            assert!(
                error.contains(
                    "begins with _, which is reserved; use a prefix such as letters/shop"
                ),
                "{error}"
            );
        }
    }

    #[test]
    fn a_queue_is_known_by_its_account_and_name() {
        let queue: SinkQueue = "sqs.eu-west-1.amazonaws.com/123456789012/lost".parse().unwrap();
        for (url, is_at) in [
            ("https://sqs.eu-west-1.amazonaws.com/123456789012/lost", true),
            ("https://eu-west-1.queue.amazonaws.com/123456789012/lost", true),
            ("https://sqs.eu-west-1.amazonaws.com/123456789012/found", false),
            ("https://sqs.eu-west-1.amazonaws.com/123456789013/lost", false),
        ] {
            assert_eq!(queue.is_at(url), is_at, "{url}");
        }
    }

    #[test]
    fn a_queue_is_its_url_without_the_scheme() {
        for (text, url, arn) in [
            (
                "sqs.eu-west-1.amazonaws.com/123456789012/lost",
                "https://sqs.eu-west-1.amazonaws.com/123456789012/lost",
                Some("arn:aws:sqs:eu-west-1:123456789012:lost"),
            ),
            (
                "sqs.cn-north-1.amazonaws.com.cn/123456789012/lost",
                "https://sqs.cn-north-1.amazonaws.com.cn/123456789012/lost",
                Some("arn:aws-cn:sqs:cn-north-1:123456789012:lost"),
            ),
            ("127.0.0.1:4566/000000000000/lost", "http://127.0.0.1:4566/000000000000/lost", None),
        ] {
            let queue: SinkQueue = text.parse().unwrap();
            assert_eq!(
                (queue.url().as_str(), queue.arn().as_deref(), queue.to_string().as_str()),
                (url, arn, text)
            );
        }
    }

    #[test]
    fn an_invalid_queue_is_refused_with_the_wrong_part() {
        for (text, part) in [
            ("", "host/account/name"),
            ("sqs.eu-west-1.amazonaws.com/lost", "host/account/name"),
            ("sqs.eu-west-1.amazonaws.com/123456789012/lost/more", "host/account/name"),
            ("sqs.eu-west-1.amazonaws.com/123456789012/lost.fifo", "FIFO"),
            ("sqs.eu-west-1.amazonaws.com/123456789012/", "name of a queue"),
            ("sqs.eu-west-1.amazonaws.com/12345/lost", "12 digits"),
            ("/123456789012/lost", "host"),
            ("u:p@sqs.eu-west-1.amazonaws.com/123456789012/lost", "host"),
        ] {
            let error = text.parse::<SinkQueue>().expect_err(text);
            assert!(error.contains(part), "{error}");
        }
    }
}
