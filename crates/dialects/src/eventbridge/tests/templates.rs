//! Templates of CloudFormation, in JSON and in YAML.

use super::*;

const TEMPLATE: &str = "AWSTemplateFormatVersion: '2010-09-09'
Resources:
  Bus: {Type: AWS::Events::EventBus, Properties: {Name: shop}}
  Key:
    Type: AWS::SecretsManager::Secret
  Crm:
    Type: AWS::Events::ApiDestination
    Properties:
      ConnectionArn: !GetAtt Auth.Arn
      InvocationEndpoint: https://crm.example.com/in
      HttpMethod: POST
  Auth:
    Type: AWS::Events::Connection
    Properties:
      AuthorizationType: API_KEY
      AuthParameters:
        ApiKeyAuthParameters: {ApiKeyName: x-key, ApiKeyValue: '{{resolve:secretsmanager:crm}}'}
  Orders:
    Type: AWS::Events::Rule
    Properties:
      EventBusName: !Ref Bus
      EventPattern: {source: [com.example.shop]}
      Targets:
        - Id: t
          Arn: !GetAtt Crm.Arn
          RoleArn: !Sub arn:${AWS::Partition}:iam::1:role/r
";
const IGNORED: &str = "note: ignored 1 other resource: only rules, API destinations and connections of EventBridge are converted";

fn of_text(name: &str, text: &str) -> (Reading, Vec<String>) {
    let reading = read(&[Source { name, text }]);
    let found = findings(&reading);
    (reading, found)
}

#[test]
fn a_template_is_read_in_yaml_and_as_the_aws_cli_prints_it() {
    let printed = json!({ "TemplateBody": TEMPLATE, "StagesAvailable": ["Original", "Processed"] })
        .to_string();
    for (name, text) in [("stack.yaml", TEMPLATE), ("stack.json", &printed)] {
        let (reading, found) = of_text(name, text);
        assert_eq!(found, [format!("{name}: {IGNORED}")]);
        let subscription = reading.catalogue.subscriptions().next().expect("a subscription");
        assert_eq!(subscription.name.to_string(), "eventbridge/shop/Orders");
        let auth = format!("{:?}", subscription.destination.auth);
        assert!(auth.contains("\"crm\""), "{auth}");
    }
}

#[test]
fn a_value_that_only_the_stack_has_is_an_error_where_a_delivery_needs_it() {
    const DEPLOYED: &str = "this value is known only after deployment; write the value, or convert \
                            the outputs of aws events describe-rule, list-targets-by-rule, \
                            describe-api-destination and describe-connection";
    for (stated, value, field) in [
        ("https://crm.example.com/in", "!Ref Url", "InvocationEndpoint"),
        ("https://crm.example.com/in", "!Sub https://${Host}/in", "InvocationEndpoint"),
        ("POST", "{'Fn::ImportValue': m}", "HttpMethod"),
    ] {
        let (_, found) = of_text("stack.yaml", &TEMPLATE.replace(stated, value));
        let expected = format!("stack.yaml: error: Resources.Crm.Properties.{field}: {DEPLOYED}");
        assert!(found.contains(&expected), "{found:#?}");
    }
    let arn = TEMPLATE.replace(
        "RoleArn: ",
        "InputTransformer: {InputTemplate: '<aws.events.rule-arn>'}\n          RoleArn: ",
    );
    let (_, found) = of_text("stack.yaml", &arn);
    let expected = "the CloudFormation template does not contain the ARN of this rule; write the \
                    value, or convert the output of aws events describe-rule";
    assert!(found.iter().any(|finding| finding.ends_with(expected)), "{found:#?}");
}

#[test]
fn a_tag_is_a_function_wherever_it_stands() {
    const DEPLOYED: &str =
        "error: Resources.Crm.Properties.HttpMethod: this value is known only after deployment";
    for value in [
        "!ImportValue method",
        "!Ref 'Method'",
        "!Ref Method # a comment",
        "!FindInMap [Methods, crm, x]",
        "!If [IsProd, POST, PUT]",
        "!Sub '${Method}'",
    ] {
        let (_, found) = of_text("stack.yaml", &TEMPLATE.replace("POST", value));
        assert!(found.iter().any(|finding| finding.contains(DEPLOYED)), "{value}: {found:#?}");
    }
    for source in ["[!Ref Source]", "!Split [',', 'a,b']", "!FindInMap [Sources, crm, x]"] {
        let (_, found) = of_text("stack.yaml", &TEMPLATE.replace("[com.example.shop]", source));
        let expected =
            "Resources.Orders.Properties.EventPattern: this value is known only after deployment";
        assert!(found.iter().any(|finding| finding.contains(expected)), "{source}: {found:#?}");
    }
    let literal =
        TEMPLATE.replace("POST", "!Sub POST").replace("!GetAtt Crm.Arn", "!Sub '${Crm.Arn}'");
    assert_eq!(of_text("stack.yaml", &literal).1, [format!("stack.yaml: {IGNORED}")]);
}

#[test]
fn a_setting_that_a_function_states_is_never_left_out() {
    let deployed = |field: &str| {
        format!(
            "error: Resources.Orders.Properties.{field}: this value is known only after deployment"
        )
    };
    let parameters = "HttpParameters: !If [A, {HeaderParameters: {a: b}}, {}]\n          RoleArn: ";
    let retries = "RetryPolicy: !If [A, {MaximumRetryAttempts: 1}, {}]\n          RoleArn: ";
    let queue = "DeadLetterConfig: !If [A, {Arn: a}, {}]\n          RoleArn: ";
    for (stated, value, expected) in [
        ("EventBusName: !Ref Bus", "EventBusName: !ImportValue bus", deployed("EventBusName")),
        ("EventBusName: ", "State: !Ref State\n      EventBusName: ", deployed("State")),
        ("RoleArn: ", parameters, deployed("Targets[0].HttpParameters")),
        ("RoleArn: ", retries, deployed("Targets[0].RetryPolicy")),
        ("RoleArn: ", queue, deployed("Targets[0].DeadLetterConfig")),
        (
            "- Id: t\n          Arn: !GetAtt Crm.Arn",
            "- Id: t\n          Arn: !Join ['', [a, b]]",
            "warning: Resources.Orders.Properties.Targets[0].Arn: not converted: the ARN of this \
             target is known only after deployment"
                .to_owned(),
        ),
        (
            "Targets:\n",
            "Targets: !If\n        - A\n",
            "warning: Resources.Orders.Properties.Targets: not converted: the ARN of this target \
             is known only"
                .to_owned(),
        ),
        (
            "RoleArn: ",
            "InputTransformer: {InputTemplate: '<aws.events.rule-name>'}\n          RoleArn: ",
            "InputTemplate: the CloudFormation template does not contain the name of this rule"
                .to_owned(),
        ),
        (
            "  Orders:\n",
            "  Orders:\n    Condition: IsProd\n",
            "warning: Resources.Orders.Condition: the template creates this rule only under the \
             condition \"IsProd\""
                .to_owned(),
        ),
    ] {
        let text = TEMPLATE.replace(stated, value);
        assert_ne!(text, TEMPLATE, "{stated}");
        let (_, found) = of_text("stack.yaml", &text);
        assert!(found.iter().any(|finding| finding.contains(&expected)), "{value}: {found:#?}");
    }
}

#[test]
fn a_logical_id_is_that_of_its_own_template() {
    let other =
        TEMPLATE.replace("crm.example.com", "test.example.com").replace("Orders:", "Tests:");
    let texts = [("prod.yaml", TEMPLATE), ("test.yaml", &other)];
    let reading = read(&texts.map(|(name, text)| Source { name, text }));
    let urls: Vec<String> = reading
        .catalogue
        .subscriptions()
        .map(|subscription| {
            format!("{} {}", subscription.name.name, subscription.destination.address())
        })
        .collect();
    assert_eq!(urls, ["Orders https://crm.example.com/in", "Tests https://test.example.com/in"]);
}

#[test]
fn a_pipe_is_named_as_not_converted() {
    let pipe = |more: &str| {
        format!("{TEMPLATE}  Pipe: {{Type: AWS::Pipes::Pipe, Properties: {{Source: a{more}}}}}\n")
    };
    for (more, problem) in [
        ("", "a pipe is not converted"),
        (", Enrichment: b", "a pipe and its enrichment are not converted"),
    ] {
        let (_, found) = of_text("stack.yaml", &pipe(more));
        let expected = format!(
            "stack.yaml: warning: Resources.Pipe: {problem}; configure the source of the pipe, or \
             its enrichment, to send events to the events queue, and write a Subscription"
        );
        assert!(found.contains(&expected), "{found:#?}");
    }
}
