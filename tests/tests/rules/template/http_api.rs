//! `infra/ingress.yaml`: API Gateway refuses anonymous requests and too many requests before they use the ingress function.

use serde_json::{Value, json};

use super::read;

/// The properties of all resources of this type.
fn of_type(template: &Value, name: &str) -> Vec<Value> {
    let resources = template["Resources"].as_object().expect("it has resources").values();
    let found = resources.filter(|resource| resource["Type"] == name);
    found.map(|resource| resource["Properties"].clone()).collect()
}

#[test]
fn every_route_needs_a_token_of_the_issuer_and_audience() {
    let template = read("infra/ingress.yaml");
    let routes = of_type(&template, "AWS::ApiGatewayV2::Route");
    assert!(!routes.is_empty());
    for route in routes {
        assert_eq!(
            (&route["AuthorizationType"], &route["AuthorizerId"]),
            (&json!("JWT"), &json!("Tokens"))
        );
    }
    let tokens = &template["Resources"]["Tokens"]["Properties"];
    assert_eq!(tokens["IdentitySource"], json!(["$request.header.Authorization"]));
    let configuration = json!({"Issuer": "JwtIssuer", "Audience": "JwtAudience"});
    assert_eq!(tokens["JwtConfiguration"], configuration);
}

#[test]
fn requests_are_throttled() {
    let [stage] = &of_type(&read("infra/ingress.yaml"), "AWS::ApiGatewayV2::Stage")[..] else {
        panic!("one stage")
    };
    for limit in ["ThrottlingRateLimit", "ThrottlingBurstLimit"] {
        assert!(stage["DefaultRouteSettings"][limit].as_u64() > Some(0), "{limit}");
    }
}

#[test]
fn the_function_reads_what_this_api_sends_and_only_this_api_may_call_it() {
    let template = read("infra/ingress.yaml");
    let integration = &template["Resources"]["Function"]["Properties"];
    assert_eq!(integration["IntegrationUri"], "IngressFunctionArn");
    assert_eq!(integration["PayloadFormatVersion"], "2.0");
    let permission = &template["Resources"]["Invocation"]["Properties"];
    assert_eq!(permission["Principal"], "apigateway.amazonaws.com");
    let source = permission["SourceArn"].as_str().expect("a text");
    assert!(source.ends_with(":${Api}/*/$default"), "{source}");
}
