//! `infra/public-keys.yaml`: everybody may read key sets, and nothing else of the config bucket.

use delivery::subscription::public_key::key_set_path;

use super::read;

#[test]
fn the_world_reads_key_sets_and_nothing_else() {
    let template = read("infra/public-keys.yaml");
    let name = "shop/orders/billing".parse().expect("a name");
    let path = key_set_path(&name).replace(&format!("{name}.json"), "");
    let resources = &template["Resources"];
    let role = &resources["Reader"]["Properties"]["Policies"];
    let statements = role[0]["PolicyDocument"]["Statement"].as_array().expect("a list");
    let read_keys = &statements[0];
    assert_eq!(read_keys["Action"], "s3:GetObject");
    assert_eq!(
        read_keys["Resource"],
        format!("arn:${{AWS::Partition}}:s3:::${{ConfigBucketName}}/{path}*")
    );
    // The other one is under a condition, for the key of KMS.
    assert!(statements.len() == 2 && statements[1][1]["Action"] == "kms:Decrypt");
    let route = &resources["Api"]["Properties"]["Body"]["paths"]["/{namespace}/{topic}/{file}"];
    let address = &route["get"]["x-amazon-apigateway-integration"]["uri"];
    let address = address.as_str().expect("a text");
    assert!(
        address
            .ends_with(&format!("/${{ConfigBucketName}}/{path}{{namespace}}/{{topic}}/{{file}}"))
    );
    assert_eq!(route.as_object().expect("methods").len(), 1, "it can only be read");
}
