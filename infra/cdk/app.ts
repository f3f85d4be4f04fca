// lastmile with alarms that notify a topic, and a function that publishes: `cdk deploy` in this folder.
import { App, CfnOutput, Stack } from "aws-cdk-lib";
import { Code, Function, Runtime } from "aws-cdk-lib/aws-lambda";
import { Topic } from "aws-cdk-lib/aws-sns";
import { Lastmile } from "./lastmile.ts";

const app = new App();
const stack = new Stack(app, "lastmile");

const alarms = new Topic(stack, "Alarms");
const lastmile = new Lastmile(stack, "Lastmile", {
  release: app.node.tryGetContext("release") ?? "../..",
  parameters: { DefaultTopic: "shop/orders", Observability: true, AlarmTopicArn: alarms.topicArn },
});

const publisher = new Function(stack, "Publisher", {
  runtime: Runtime.NODEJS_22_X,
  handler: "index.handler",
  code: Code.fromInline(`
    const { SQSClient, SendMessageCommand } = require("@aws-sdk/client-sqs");
    const sqs = new SQSClient();
    exports.handler = (event) =>
      sqs.send(new SendMessageCommand({ QueueUrl: process.env.EVENTS_QUEUE_URL, MessageBody: JSON.stringify(event) }));
  `),
  environment: { EVENTS_QUEUE_URL: lastmile.events.queueUrl },
});
lastmile.events.grantSendMessages(publisher);

new CfnOutput(stack, "PublisherName", { value: publisher.functionName });
