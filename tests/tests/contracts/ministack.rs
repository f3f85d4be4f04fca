//! Tables of the emulated AWS, whose DynamoDB is another one than that of the local AWS.
//!
//! Separate because it needs Python. One server is for all tests of this binary, and each test has a table of its own.

use std::process::Child;
use std::sync::atomic::{AtomicU32, Ordering};

use adapters::table::{DynamoTable, PARTITION, SORT};
use aws_config::SdkConfig;
use aws_sdk_dynamodb::config::{Credentials, SharedCredentialsProvider};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use lastmile_tests::emulated::{ReservedPort, build_folder, serve};
use lastmile_tests::libraries;
use local::aws::local_clients;
use tokio::sync::OnceCell;

/// The server, which ends when its standard input closes with this process.
struct Server {
    port: ReservedPort,
    _process: Child,
}

impl Server {
    async fn start() -> Self {
        let port = ReservedPort::take();
        let build = build_folder("emulated-table");
        let process = serve(&build, port.number, port.number, Vec::new()).await;
        Self { port, _process: process }
    }

    fn clients(&self) -> SdkConfig {
        let clients = local_clients(&format!("http://127.0.0.1:{}", self.port.number));
        // The emulated AWS refuses unknown credentials.
        let account = Credentials::new("test", "test", None, None, "test");
        let account = SharedCredentialsProvider::new(account);
        clients.into_builder().credentials_provider(account).build()
    }
}

/// An empty table. Without Python it is `None`, and the test is reported as skipped.
pub(crate) async fn table() -> Option<DynamoTable> {
    static SERVER: OnceCell<Server> = OnceCell::const_new();
    static TABLES: AtomicU32 = AtomicU32::new(0);
    let _python = libraries::python("the table of the emulated AWS")?;
    let clients = SERVER.get_or_init(Server::start).await.clients();
    let name = format!("table-{}", TABLES.fetch_add(1, Ordering::Relaxed));
    create(&clients, &name).await;
    Some(DynamoTable::new(&clients, name))
}

async fn create(clients: &SdkConfig, name: &str) {
    let client = aws_sdk_dynamodb::Client::new(clients);
    let mut create =
        client.create_table().table_name(name).billing_mode(BillingMode::PayPerRequest);
    for (name, kind) in [(PARTITION, KeyType::Hash), (SORT, KeyType::Range)] {
        let key = KeySchemaElement::builder().attribute_name(name).key_type(kind).build();
        let attribute = AttributeDefinition::builder()
            .attribute_name(name)
            .attribute_type(ScalarAttributeType::S)
            .build();
        create = create
            .key_schema(key.expect("a whole key"))
            .attribute_definitions(attribute.expect("a whole attribute"));
    }
    create.send().await.expect("a table is created");
}
