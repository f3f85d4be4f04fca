//! The local AWS and real clients of it.

use std::collections::HashMap;

use adapters::queues::SqsQueues;
use adapters::table::DynamoTable;
use delivery::ports::QueueName;
use local::aws::{LocalAws, LocalAwsConfig, TABLE, local_clients};
use tempfile::TempDir;

/// The buckets and queues of one test, which end with the test.
pub(crate) struct Cloud {
    pub(crate) aws: LocalAws,
    pub(crate) sqs: aws_sdk_sqs::Client,
    pub(crate) s3: aws_sdk_s3::Client,
    _folder: TempDir,
}

impl Cloud {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let config = LocalAwsConfig::of_lastmile(0, folder.path().to_owned(), 60);
        let aws = LocalAws::start(config).await.expect("a free port");
        let (sqs, s3) = (sqs_client(&aws.endpoint()), s3_client(&aws.endpoint()));
        Self { aws, sqs, s3, _folder: folder }
    }

    /// The table of the functions in the local AWS.
    pub(crate) fn table(&self) -> DynamoTable {
        DynamoTable::new(&local_clients(&self.aws.endpoint()), TABLE.to_owned())
    }

    /// The queues of the functions in the local AWS.
    pub(crate) fn queues(&self) -> SqsQueues {
        SqsQueues::new(self.sqs.clone(), self.urls())
    }

    pub(crate) fn urls(&self) -> HashMap<QueueName, String> {
        let names = [
            QueueName::Events,
            QueueName::Retry,
            QueueName::Slow,
            QueueName::Isolation,
            QueueName::DeadLetter,
            QueueName::LastResort,
        ];
        names.into_iter().map(|name| (name, self.aws.queue_url(local_name(name)))).collect()
    }
}

fn local_name(queue: QueueName) -> &'static str {
    match queue {
        QueueName::Events => "events",
        QueueName::Isolation => "isolation",
        QueueName::Retry => "retry",
        QueueName::Slow => "slow",
        QueueName::DeadLetter => "dead-letter",
        QueueName::LastResort => "last-resort",
    }
}

/// A client without retries, so that a test can count requests.
pub(crate) fn sqs_client(endpoint: &str) -> aws_sdk_sqs::Client {
    use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region, retry::RetryConfig};
    let config = aws_sdk_sqs::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("any", "thing", None, None, "test"))
        .retry_config(RetryConfig::disabled())
        .endpoint_url(endpoint)
        .build();
    aws_sdk_sqs::Client::from_conf(config)
}

/// A client of S3 without retries.
pub(crate) fn s3_client(endpoint: &str) -> aws_sdk_s3::Client {
    use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region, retry::RetryConfig};
    let config = aws_sdk_s3::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("any", "thing", None, None, "test"))
        .retry_config(RetryConfig::disabled())
        .endpoint_url(endpoint)
        .force_path_style(true)
        .build();
    aws_sdk_s3::Client::from_conf(config)
}
