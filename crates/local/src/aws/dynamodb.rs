//! DynamoDB in memory, with the table of a deployment.
//!
//! Separate so that other modules only use the name of the table. Does not remove expired items:
//! readers must compare the expiry time of an item with the current time.

use std::sync::Arc;

use adapters::table::{PARTITION, SORT};
use anyhow::Context as _;
use rustack_dynamodb_core::config::DynamoDBConfig;
use rustack_dynamodb_core::handler::RustackDynamoDBHandler;
use rustack_dynamodb_core::provider::RustackDynamoDB;
use rustack_dynamodb_http::{DynamoDBHttpConfig, DynamoDBHttpService};
use serde_json::json;

/// The name of the deployment's table.
pub const TABLE: &str = "lastmile";

/// The DynamoDB service, in the form that hyper requires.
pub(super) type Service = DynamoDBHttpService<RustackDynamoDBHandler>;

/// Creates the DynamoDB service with an empty table.
pub(super) fn service() -> anyhow::Result<Service> {
    let table = json!({
        "TableName": TABLE,
        "KeySchema": [
            { "AttributeName": PARTITION, "KeyType": "HASH" },
            { "AttributeName": SORT, "KeyType": "RANGE" },
        ],
        "AttributeDefinitions": [
            { "AttributeName": PARTITION, "AttributeType": "S" },
            { "AttributeName": SORT, "AttributeType": "S" },
        ],
        "BillingMode": "PAY_PER_REQUEST",
    });
    let provider = RustackDynamoDB::new(DynamoDBConfig::default());
    let created = provider.handle_create_table(serde_json::from_value(table)?);
    created.map(drop).context("the local table cannot be created")?;
    let handler = RustackDynamoDBHandler::new(Arc::new(provider));
    Ok(DynamoDBHttpService::new(Arc::new(handler), DynamoDBHttpConfig::default()))
}
