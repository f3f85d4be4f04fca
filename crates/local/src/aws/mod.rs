//! The local AWS: one listener on the loopback address that answers as SQS and as S3.
//!
//! It is separate from the functions because they must not know it: they meet it through the AWS
//! clients, as they meet the real one. It promises one endpoint for both services, queues in
//! memory, objects as plain files under one folder, and any credentials accepted. It does not keep
//! messages over a restart, check signatures, or listen on anything but 127.0.0.1.

mod config;
mod s3;
mod server;
mod sqs;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub use config::{LocalAwsConfig, QueueConfig, Redrive};

/// The account that owns every local queue.
pub const ACCOUNT: &str = "000000000000";

/// The region every local resource is in.
pub const REGION: &str = "us-east-1";

/// A running local AWS; dropping it ends it at once.
#[derive(Debug)]
pub struct LocalAws {
    port: u16,
    queues: Arc<sqs::Queues>,
    server: JoinSet<()>,
}

/// Why the local AWS did not start, or could not answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The port is taken or may not be listened on.
    #[error(
        "cannot listen on 127.0.0.1:{port}; is another local AWS running there? choose another port"
    )]
    Listen {
        /// The port that was asked for.
        port: u16,
        /// What the machine said.
        source: std::io::Error,
    },
    /// The folder of the buckets cannot be made.
    #[error("cannot make the bucket folder {folder}")]
    Bucket {
        /// The folder that was to be made.
        folder: String,
        /// What the machine said.
        source: std::io::Error,
    },
    /// A queue was refused, or did not answer.
    #[error("the queue {queue} does not work: {reason}")]
    Queue {
        /// The name of the queue.
        queue: String,
        /// What the queues said.
        reason: String,
    },
}

impl LocalAws {
    /// Listens, makes the buckets and the queues, and serves from then on.
    ///
    /// # Errors
    /// When the port is taken, a bucket's folder cannot be made, or a queue's settings are refused.
    pub async fn start(config: LocalAwsConfig) -> Result<Self, Error> {
        let asked = config.port;
        let listen = |source| Error::Listen { port: asked, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, asked)).await.map_err(listen)?;
        let port = listener.local_addr().map_err(listen)?.port();
        let folder = s3::Folder::create(&config.data, &config.buckets)?;
        let queues = Arc::new(sqs::Queues::create(port, &config.queues).await?);
        let mut server = JoinSet::new();
        server.spawn(server::serve(listener, Arc::clone(&queues), s3::service(folder)));
        Ok(Self { port, queues, server })
    }

    /// The address of both services, `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The address of a queue, `http://127.0.0.1:PORT/000000000000/NAME`.
    #[must_use]
    pub fn queue_url(&self, name: &str) -> String {
        format!("{}/{ACCOUNT}/{name}", self.endpoint())
    }

    /// How many messages each queue still holds: visible, delayed and in flight together, by the
    /// queue's name.
    ///
    /// # Errors
    /// When a queue does not answer.
    pub async fn messages_held(&self) -> Result<BTreeMap<String, u64>, Error> {
        self.queues.messages_held().await
    }

    /// Ends the listener, every connection and every queue; the messages are gone afterwards, the
    /// objects stay.
    pub async fn stop(mut self) {
        self.server.shutdown().await;
        self.queues.shutdown().await;
    }
}
