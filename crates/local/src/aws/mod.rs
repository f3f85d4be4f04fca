//! The local AWS: one listener on the loopback address that serves SQS, DynamoDB and S3.
//!
//! Separate from the functions because they must not depend on a local AWS: they use the AWS
//! clients, as in the cloud. The services come from the crates of rustack. `README.md` of this
//! crate lists each adaptation, with the issue that would make it unnecessary.
//!
//! Promises: one endpoint for all services, any credentials, queues and a table in memory, objects
//! as plain files in one folder. Loses messages and items at a restart. Does not verify signatures,
//! and listens on 127.0.0.1 only.

mod clients;
mod config;
mod dynamodb;
mod s3;
mod server;
mod sqs;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub use clients::local_clients;
pub use config::{LocalAwsConfig, QueueConfig, Redrive};
pub use dynamodb::TABLE;

/// The account id that owns every local queue.
pub const ACCOUNT: &str = "000000000000";

/// The region of every local resource.
pub const REGION: &str = "us-east-1";

/// A running local AWS. Dropping the value stops the local AWS immediately.
#[derive(Debug)]
pub struct LocalAws {
    port: u16,
    queues: Arc<sqs::Queues>,
    server: JoinSet<()>,
}

impl LocalAws {
    /// Starts a local AWS: listens, creates the buckets and the queues, and serves requests.
    ///
    /// # Errors
    /// Fails if the port is in use, a bucket's folder cannot be created, or a queue's settings are
    /// invalid.
    pub async fn start(config: LocalAwsConfig) -> anyhow::Result<Self> {
        let requested = config.port;
        let taken = || {
            format!(
                "cannot listen on 127.0.0.1:{requested}; stop the program that uses this port, or \
                 choose another port"
            )
        };
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, requested)).await.with_context(taken)?;
        // For port 0 the system chooses a port, and the URLs of the queues contain it.
        let port = listener.local_addr().with_context(taken)?.port();
        let buckets = s3::Buckets::create(&config.data, &config.buckets)?;
        let queues = Arc::new(sqs::Queues::create(port, &config.queues).await?);
        let mut server = JoinSet::new();
        let services =
            server::Services::new(Arc::clone(&queues), dynamodb::service()?, s3::service(buckets));
        server.spawn(server::serve(listener, services));
        Ok(Self { port, queues, server })
    }

    /// Returns the endpoint of all services, `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the URL of a queue, `http://127.0.0.1:PORT/000000000000/NAME`.
    #[must_use]
    pub fn queue_url(&self, name: &str) -> String {
        format!("{}/{ACCOUNT}/{name}", self.endpoint())
    }

    /// Makes the delayed messages of the dead-letter queue visible now. These messages may be
    /// received twice.
    ///
    /// # Errors
    /// Fails if the queue does not respond.
    pub async fn release_dead_letters(&self) -> anyhow::Result<()> {
        self.queues.release().await
    }

    /// Returns the number of messages in each queue (visible, delayed and in flight together), by
    /// the queue's name.
    ///
    /// # Errors
    /// Fails if a queue does not respond.
    pub async fn messages_held(&self) -> anyhow::Result<BTreeMap<String, u64>> {
        self.queues.messages_held().await
    }

    /// Stops the listener, every connection and every queue. Messages and items are lost; objects
    /// stay on disk.
    pub async fn stop(mut self) {
        // Stop the connections first, so that no request uses a stopped queue.
        self.server.shutdown().await;
        self.queues.shutdown().await;
    }
}
