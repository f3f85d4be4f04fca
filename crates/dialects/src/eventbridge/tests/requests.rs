//! Requests: bodies, parameters, authentication, retries and dead letters.

use delivery::native::documents;

use super::*;

/// The `spec` of the converted rule, in the native form.
fn spec(documents: &[Json], expected: &[&str]) -> Json {
    let reading = reading(documents);
    assert_eq!(findings(&reading), expected);
    let all = super::requests::documents(&reading.catalogue);
    let subscription = all.into_iter().find(|document| document["kind"] == json!("Subscription"));
    subscription.expect("a subscription")["spec"].take()
}

fn body(target: &Json, parameters: &Json) -> Json {
    spec(&files(target, &json!({}), parameters), &[])["destination"]["bodyText"].take()
}

#[test]
fn an_input_is_a_template() {
    let none = json!({});
    let transformer = |template: &str| {
        let paths =
            json!({ "id": "$.detail.id", "kind": "$.detail-type", "first": "$.resources[0]" });
        json!({ "InputTransformer": { "InputPathsMap": paths, "InputTemplate": template } })
    };
    for (target, expected) in [
        (json!({ "Input": r#"{"a":  "{{ x }}"}"# }), r#"{"a":  "{{ '{' }}{ x }}"}"#),
        (json!({ "InputPath": "$.detail.id" }), "{{ event.data.detail.id | tojson }}"),
        (transformer("<id>"), "{{ event.data.detail.id | default(none) | tojson }}"),
        (
            transformer(r#"{"a" : "\"<id>\" is <kind>", "b": [<first>]}"#),
            r#"{"a" : "\"{{ ((event.data.detail.id | default('') ~ '') | tojson)[1:-1] }}\" is {{ ((event.data['detail-type'] | default('') ~ '') | tojson)[1:-1] }}", "b": [{{ event.data.resources[0] | default(none) | tojson }}]}"#,
        ),
        (transformer("<id> is <other>"), "{{ event.data.detail.id | default('') }} is <other>"),
        (
            transformer(r#""<aws.events.rule-name> <aws.events.rule-arn>""#),
            r#""orders arn:aws:events:eu-west-1:123456789012:rule/orders""#,
        ),
        (transformer("<aws.events.event.json>"), "{{ event.data | default(none) | tojson }}"),
    ] {
        assert_eq!(body(&target, &none), json!(expected), "{target}");
    }
    assert_eq!(body(&none, &none), Json::Null);
    assert_eq!(body(&json!({ "InputPath": "$" }), &none), Json::Null);
}

#[test]
fn body_parameters_of_a_connection_are_members_at_the_end() {
    let parameters = json!({ "InvocationHttpParameters": { "BodyParameters": [
        { "Key": "client", "Value": "\"a\"", "IsValueSecret": false },
    ] } });
    for (target, expected) in [
        (json!({ "Input": "{}" }), r#"{"client":"\"a\""}"#),
        (json!({ "Input": r#"{"a":1}"# }), r#"{"a":1,"client":"\"a\""}"#),
        (
            json!({}),
            r#"{{ '{' }}{% for name in event.data if name not in ["client"] %}{{ name | tojson }}:{{ (event.data)[name] | tojson }},{% endfor %}"client":"\"a\""}"#,
        ),
    ] {
        assert_eq!(body(&target, &parameters), json!(expected), "{target}");
    }
    assert_eq!(
        refused(&files(&json!({ "Input": "[1]" }), &json!({}), &parameters)),
        "2.json: error: Targets[0]: the connection adds body parameters to this input, which is \
         not an object; use an object as the input"
    );
}

#[test]
fn a_member_that_the_input_and_the_connection_state_is_refused() {
    let parameters = json!({ "InvocationHttpParameters": { "BodyParameters": [
        { "Key": "token", "Value": "a", "IsValueSecret": false },
    ] } });
    let template = |text: &str| {
        let paths = json!({ "id": "$.detail.id" });
        json!({ "InputTransformer": { "InputPathsMap": paths, "InputTemplate": text } })
    };
    for target in [
        json!({ "Input": r#"{"a":1,"token" : "b"}"# }),
        json!({ "Input": r#"{"\u0074oken":1}"# }),
        template(r#"{"id": <id>, "text": "<id> \"{", "token": <id>}"#),
    ] {
        assert_eq!(
            refused(&files(&target, &json!({}), &parameters)),
            "2.json: error: Targets[0]: the input and the connection both set \"token\"; remove \
             one of them",
            "{target}"
        );
    }
    for target in [
        json!({ "Input": r#"{"a":{"token":1},"b":"token"}"# }),
        template(r#"{"id": "<id>, \"token\":", "list": [{"token": <id>}]}"#),
    ] {
        let body = body(&target, &parameters);
        assert!(body.as_str().is_some_and(|text| text.ends_with(r#","token":"a"}"#)), "{target}");
    }
}

#[test]
fn the_parameters_of_a_connection_take_precedence() {
    let target = json!({ "HttpParameters": {
        "HeaderParameters": { "X-Tenant": "a", "X-Id": "$.detail.id", "content-type": "text/plain" },
        "QueryStringParameters": { "env": "dev", "id": "$.id" },
        "PathParameterValues": ["$.detail.id", "x", "y"],
    } });
    let parameters = json!({ "InvocationHttpParameters": {
        "HeaderParameters": [{ "Key": "x-tenant", "Value": "{{b", "IsValueSecret": false }],
        "QueryStringParameters": [{ "Key": "env", "Value": "prod", "IsValueSecret": false }],
    } });
    let endpoint = json!({ "InvocationEndpoint": "https://crm.example.com/*/a/*?x=1" });
    let warned = "2.json: warning: Targets[0].HttpParameters.PathParameterValues[2]: no effect: \
                  the endpoint has no * for this value";
    let destination =
        spec(&files(&target, &endpoint, &parameters), &[warned])["destination"].take();
    assert_eq!(
        destination["url"],
        json!("https://crm.example.com/{{ event.data.detail.id }}/a/x?x=1")
    );
    assert_eq!(destination["bodyText"], json!("{{ event.data | tojson }}"));
    assert_eq!(destination["query"], json!({ "env": "prod", "id": "{{ event.data.id }}" }));
    let headers = json!([
        { "name": "X-Id", "path": "$['detail']['id']" },
        { "name": "x-tenant", "value": "{{ '{' }}{b" },
    ]);
    assert_eq!(
        (&destination["headers"], &destination["contentType"]),
        (&headers, &json!("text/plain"))
    );
}

#[test]
fn a_get_has_no_body() {
    let get = json!({ "HttpMethod": "GET" });
    let warned = "2.json: warning: Targets[0].InputPath: not sent: a GET request has no body";
    let written = spec(&files(&json!({ "InputPath": "$.detail" }), &get, &json!({})), &[warned]);
    assert_eq!(written["destination"]["method"], json!("GET"));
    assert_eq!(written["destination"]["bodyText"], Json::Null);
}

#[test]
fn secrets_are_names_and_never_values() {
    let kinds = [
        (
            "API_KEY",
            json!({ "ApiKeyAuthParameters": { "ApiKeyName": "x-key", "ApiKeyValue": "clear" } }),
        ),
        (
            "BASIC",
            json!({ "BasicAuthParameters": { "Username": "u", "Password": { "Ref": "P" } } }),
        ),
        (
            "OAUTH_CLIENT_CREDENTIALS",
            json!({ "OAuthParameters": {
                "AuthorizationEndpoint": "https://id.example.com/token", "HttpMethod": "PUT",
                "ClientParameters": { "ClientID": "c", "ClientSecret": "{{resolve:secretsmanager:crm:SecretString:secret::}}" },
                "OAuthHttpParameters": {
                    "BodyParameters": [
                        { "Key": "grant_type", "Value": "client_credentials", "IsValueSecret": false },
                        { "Key": "audience", "Value": "a", "IsValueSecret": false },
                        { "Key": "tenant", "Value": "t", "IsValueSecret": false },
                    ],
                    "QueryStringParameters": [{ "Key": "v", "Value": "1 2", "IsValueSecret": false }],
                },
            } }),
        ),
    ];
    let expected = [
        json!({ "header": { "name": "x-key", "value": "env:CRM_API_KEY" } }),
        json!({ "basic": { "user": "u", "password": "env:CRM_PASSWORD" } }),
        json!({ "oauth2": { "tokenUrl": "https://id.example.com/token?v=1+2", "clientId": "c", "audience": "a",
            "clientSecret": "secretsmanager:crm#secret", "parameters": { "tenant": "t" } } }),
    ];
    for ((kind, auth), expected) in kinds.into_iter().zip(expected) {
        let connection = json!({ "ConnectionArn": CONNECTION_ARN, "Name": "crm", "AuthorizationType": kind,
            "AuthParameters": auth });
        let [rule, targets, destination, _] = files(&json!({}), &json!({}), &json!({}));
        let reading = reading(&[rule, targets, destination, connection]);
        let shown = format!("{:?}", reading.findings);
        let written = documents(&reading.catalogue);
        assert_eq!(written[1]["spec"]["destination"]["auth"], expected, "{shown}");
        assert!(!json!(written).to_string().contains("clear") && !shown.contains("clear"));
        let warned = reading
            .findings
            .iter()
            .filter(|finding| finding.message.starts_with("the secret is not copied"));
        assert_eq!(warned.count(), usize::from(!kind.starts_with("OAUTH")));
    }
}

#[test]
fn retries_rates_and_dead_letters_are_those_of_the_target() {
    let policy =
        |attempts: u32| json!({ "MaximumRetryAttempts": attempts, "MaximumEventAgeInSeconds": 90 });
    let queue = json!({ "Arn": "arn:aws:sqs:eu-west-1:123456789012:lost" });
    let target = json!({ "RetryPolicy": policy(0), "DeadLetterConfig": queue });
    let rate = json!({ "InvocationRateLimitPerSecond": 5, "HttpMethod": "DELETE" });
    let note = "2.json: note: Targets[0].DeadLetterConfig.Arn: dead letters in this queue have the \
                format of lastmile; add the queue to ExtraSinkArns of the stack";
    let written = spec(&files(&target, &rate, &json!({})), &[note]);
    assert_eq!(
        written["retry"],
        json!({ "maxAttempts": 1, "timeToLive": "PT1M30S", "retryOn": ["401"] })
    );
    let sink = "sqs://sqs.eu-west-1.amazonaws.com/123456789012/lost";
    assert_eq!(written["deadLetter"], json!({ "sink": sink }));
    let destination = &written["destination"];
    let settings = ["method", "maxPerSecond", "timeout"].map(|field| destination[field].clone());
    assert_eq!(settings, [json!("DELETE"), json!(5), json!("PT5S")]);
    let by_default = spec(&files(&json!({}), &json!({}), &json!({})), &[]);
    assert_eq!(by_default["retry"], json!({ "maxAttempts": 186, "retryOn": ["401"] }));
    let many = files(&json!({ "RetryPolicy": policy(186) }), &json!({}), &json!({}));
    assert_eq!(
        refused(&many),
        "2.json: error: Targets[0].RetryPolicy.MaximumRetryAttempts: must be 0 to 185, but is 186"
    );
}

#[test]
fn a_constant_in_the_path_stays_in_the_path() {
    let target = |values: &[&str]| json!({ "HttpParameters": { "PathParameterValues": values } });
    let two = json!({ "InvocationEndpoint": "https://crm.example.com/*/x/*" });
    let all = files(&target(&["a/b c?d#e", "{{ event.id }}"]), &two, &json!({}));
    let expected = "https://crm.example.com/a/b%20c%3Fd%23e/x/%7B%7B%20event.id%20%7D%7D";
    assert_eq!(spec(&all, &[])["destination"]["url"], expected);
    let braces = json!({ "InvocationEndpoint": "https://crm.example.com/{{ event.id }}" });
    let url = spec(&files(&json!({}), &braces, &json!({})), &[])["destination"]["url"].take();
    assert_eq!(url, "https://crm.example.com/%7B%7B%20event.id%20%7D%7D");
    let warning = "3.json: warning: InvocationEndpoint: PathParameterValues has no value for this \
                   *, so the * stays in the URL; add a value for each *";
    let url = spec(&files(&target(&["$.id"]), &two, &json!({})), &[warning]);
    assert_eq!(url["destination"]["url"], "https://crm.example.com/{{ event.data.id }}/x/*");
}

#[test]
fn two_secrets_never_share_a_variable() {
    let secret = |key: &str| json!({ "Key": key, "IsValueSecret": true });
    let parameters = json!({ "InvocationHttpParameters": {
        "HeaderParameters": [secret("api-key"), secret("x-t")],
        "QueryStringParameters": [secret("X_T")],
    } });
    let [rule, mut targets, destination, connection] = files(&json!({}), &json!({}), &parameters);
    let target = with(&targets["Targets"][0], &json!({ "Id": "u" }));
    targets["Targets"].as_array_mut().expect("a list").push(target);
    let written = documents(&reading(&[rule, targets, destination, connection]).catalogue);
    for subscription in &written[1..] {
        let destination = &subscription["spec"]["destination"];
        assert_eq!(destination["auth"]["header"]["value"], "env:CRM_API_KEY");
        assert_eq!(destination["headers"][0]["secret"], "env:CRM_API_KEY_2");
        assert_eq!(destination["headers"][1]["secret"], "env:CRM_X_T");
        assert_eq!(destination["query"]["X_T"], r#"{{ secret("env:CRM_X_T_2") }}"#);
    }
    let [rule, targets, destination, connection] = files(&json!({}), &json!({}), &json!({}));
    let numbered = with(&connection, &json!({ "Name": "1crm" }));
    let written = documents(&reading(&[rule, targets, destination, numbered]).catalogue);
    let header = &written[1]["spec"]["destination"]["auth"]["header"];
    assert_eq!(header["value"], "env:CONNECTION_1CRM_API_KEY");
}

#[test]
fn what_is_not_sent_is_a_warning() {
    let content_type =
        json!({ "HttpParameters": { "HeaderParameters": { "Content-Type": "text/plain" } } });
    let get = files(&content_type, &json!({ "HttpMethod": "GET" }), &json!({}));
    let warning = "2.json: warning: Targets[0].HttpParameters.HeaderParameters.Content-Type: not \
                   sent: a GET request has no body";
    spec(&get, &[warning]);
    let [rule, targets, destination, _] = files(&json!({}), &json!({}), &json!({}));
    let oauth = json!({ "ConnectionArn": CONNECTION_ARN, "Name": "crm", "AuthorizationType": "OAUTH_CLIENT_CREDENTIALS",
        "AuthParameters": { "OAuthParameters": {
            "AuthorizationEndpoint": "https://id.example.com/token",
            "ClientParameters": { "ClientID": "c", "ClientSecret": "{{resolve:secretsmanager:crm:SecretString:k:AWSPREVIOUS}}" },
            "OAuthHttpParameters": { "BodyParameters": [{ "Key": "grant_type", "Value": "password" }] },
        } } });
    let found = findings(&reading(&[rule, targets, destination, oauth])).concat();
    for expected in [
        "BodyParameters[0]: no effect: lastmile requests tokens with the grant client_credentials",
        "the secret is not copied: the Subscription refers to it as env:CRM_CLIENT_SECRET",
    ] {
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn what_cannot_be_requested_is_an_error_at_its_field() {
    let none = json!({});
    let several = json!({ "InputPath": "$.detail.items[*]" });
    let template = |template: &str| json!({ "InputTransformer": { "InputTemplate": template } });
    let header = json!({ "HttpParameters": { "HeaderParameters": { "X-Id": "$.detail..id" } } });
    let content_type =
        json!({ "HttpParameters": { "HeaderParameters": { "Content-Type": "$.id" } } });
    for (target, destination, expected) in [
        (
            content_type,
            none.clone(),
            "2.json: error: Targets[0].HttpParameters.HeaderParameters.Content-Type: the content \
             type cannot depend on the event",
        ),
        (
            several,
            none.clone(),
            "2.json: error: Targets[0].InputPath: \"$.detail.items[*]\" may select several values; \
             use a path such as $.detail.items[0].id",
        ),
        (
            header,
            none.clone(),
            "2.json: error: Targets[0].HttpParameters.HeaderParameters.X-Id: \"$.detail..id\" may \
             select several values; use a path such as $.detail.items[0].id",
        ),
        (
            template("<aws.events.other>"),
            none.clone(),
            "2.json: error: Targets[0].InputTransformer.InputTemplate: \"aws.events.other\" is not \
             a supported variable",
        ),
        (
            none.clone(),
            json!({ "HttpMethod": "HEAD" }),
            "3.json: error: HttpMethod: the method HEAD is not supported; use POST, PUT, PATCH, \
             DELETE or GET",
        ),
    ] {
        assert_eq!(refused(&files(&target, &destination, &none)), expected);
    }
    let unknown = files(&json!({ "KinesisParameters": {} }), &none, &none);
    assert_eq!(
        findings(&reading(&unknown)),
        [
            "2.json: warning: Targets[0].KinesisParameters: unknown field \"KinesisParameters\"; known: Arn, DeadLetterConfig, \
          HttpParameters, Id, Input, InputPath, InputTransformer, RetryPolicy, RoleArn"
        ]
    );
}
