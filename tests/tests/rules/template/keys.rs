//! `infra/public-keys.yaml`: everybody may read key sets, which have a bucket of their own.

use delivery::subscription::public_key::key_set_path;
use serde_json::json;

use super::read;

#[test]
fn the_world_reads_key_sets_and_nothing_else() {
    let template = read("infra/public-keys.yaml");
    let resources = &template["Resources"];
    let role = &resources["Reader"]["Properties"]["Policies"];
    let statement = json!([{
        "Sid": "ReadKeySets", "Effect": "Allow", "Action": "s3:GetObject", "Resource": "${KeysBucket.Arn}/*"
    }]);
    assert_eq!(role[0]["PolicyDocument"]["Statement"], statement);
    let route = &resources["Api"]["Properties"]["Body"]["paths"]["/{namespace}/{topic}/{file}"];
    let address = &route["get"]["x-amazon-apigateway-integration"]["uri"];
    let address = address.as_str().expect("a text");
    let name = "{namespace}/{topic}/{file}";
    assert!(address.ends_with(&format!("/${{KeysBucket}}/{name}")), "{address}");
    let path = key_set_path(&"shop/orders/billing".parse().expect("a name"));
    assert_eq!(path.split('/').count(), name.split('/').count());
    assert_eq!(route.as_object().expect("methods").len(), 1, "it can only be read");
}

#[test]
fn the_bucket_of_key_sets_is_private() {
    let template = read("infra/public-keys.yaml");
    let bucket = &template["Resources"]["KeysBucket"]["Properties"];
    let blocks = bucket["PublicAccessBlockConfiguration"].as_object().expect("a block");
    assert!(blocks.len() == 4 && blocks.values().all(|blocked| blocked == true), "{blocks:?}");
}
