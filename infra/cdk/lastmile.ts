// lastmile in an app of the AWS CDK: the template of a release, in which every resource keeps its name, and its zips.
// A release has this file in infra/cdk, beside an app that uses it. docs/guides/deploy.md explains both.
import { CfnCondition, CfnOutput, type CfnParameter, Fn, Stack, Token } from "aws-cdk-lib";
import { Asset } from "aws-cdk-lib/aws-s3-assets";
import { type IQueue, Queue } from "aws-cdk-lib/aws-sqs";
import { CfnInclude } from "aws-cdk-lib/cloudformation-include";
import { Construct } from "constructs";

/** Where a release has the code of each function. */
const FUNCTIONS = {
  DispatchFunction: "dispatch.zip",
  DeadLetterFunction: "deadletter.zip",
  IngressFunction: "ingress.zip",
};

export interface LastmileProps {
  /** Folder of a release for one processor, such as lastmile-0.1.0/arm64. */
  readonly release: string;
  /** Parameters of template.yaml that are not to have their defaults. */
  readonly parameters?: Readonly<Record<string, string | number | boolean | readonly string[]>>;
}

/** One in a stack, whose name `lastmile --stack` is given: those of its functions and log groups begin with it. */
export class Lastmile extends Construct {
  /** Where events are published: `events.grantSendMessages(publisher)`. */
  readonly events: IQueue;
  readonly #template: CfnInclude;

  constructor(scope: Construct, id: string, props: LastmileProps) {
    super(scope, id);
    const templateFile = `${props.release}/template.yaml`;
    const given = Object.entries(props.parameters ?? {});
    // Alarms that watch a function take its deployment back. They form no circle once SAM has made these two resources.
    const allowCyclicalReferences = true;
    const parameters: Record<string, string | string[]> = {};
    const declared = new CfnInclude(new Stack(), "Declared", { templateFile, allowCyclicalReferences });
    for (const [name, value] of given) {
      check(declared.getParameter(name), name, value);
      parameters[name] = asTemplates(value);
      // What `lastmile --stack` asks the stack for.
      const text = [value].flat().join(",");
      if (text !== "") new CfnOutput(this, name, { value: text }).overrideLogicalId(name);
    }

    this.#template = new CfnInclude(this, "Template", {
      templateFile,
      allowCyclicalReferences,
      parameters,
      loadNestedStacks: { ObservabilityStack: { templateFile: `${props.release}/infra/observability.yaml` } },
    });
    this.#setConditions(given.map(([, value]) => [value].flat()[0]));
    for (const [name, zip] of Object.entries(FUNCTIONS)) {
      const code = new Asset(this, `${name}Code`, { path: `${props.release}/${zip}` });
      const [Bucket, Key] = [code.s3BucketName, code.s3ObjectKey];
      this.#template.getResource(name).addPropertyOverride("CodeUri", { Bucket, Key });
    }
    this.events = Queue.fromQueueAttributes(this, "Events", {
      queueArn: this.#template.getResource("EventsQueue").getAtt("Arn").toString(),
      queueUrl: this.output("EventsQueueUrl"),
      keyArn: parameters["KmsKeyArn"]?.toString() || undefined,
    });
  }

  /** CloudFormation refuses a condition that refers to a resource. A value from a resource is never empty. */
  #setConditions(values: readonly unknown[]): void {
    const text = (expression: unknown) => JSON.stringify(Stack.of(this).resolve(expression));
    const isNotEmpty = (value: unknown) => Fn.conditionNot(Fn.conditionEquals(value, ""));
    const ofResources = values.filter((value) => Token.isUnresolved(value)).map((value) => text(isNotEmpty(value)));
    for (const condition of this.#template.node.findAll()) {
      if (condition instanceof CfnCondition && ofResources.includes(text(condition.expression))) {
        condition.expression = isNotEmpty("given");
      }
    }
  }

  /** The value of an output of template.yaml, such as DeadLetterBucketName. */
  output(name: string): string {
    return this.#template.getOutput(name).value;
  }
}

/** As the text or list that a parameter is in a template. */
function asTemplates(value: string | number | boolean | readonly string[]): string | string[] {
  if (typeof value !== "object") return String(value);
  return value.length > 0 ? [...value] : [""];
}

/** What CloudFormation checks of a parameter: the value takes its place in the template, where nothing does. */
function check(parameter: CfnParameter, name: string, value: unknown): void {
  if (name === "GradualDeployment") throw new Error(`cdk deploy --parameters ${name}=NAME names a deployment`);
  if (Token.isUnresolved(value)) return;
  const { allowedPattern, allowedValues, minValue = -Infinity, maxValue = Infinity } = parameter;
  const isList = parameter.type === "CommaDelimitedList";
  const isRight =
    Array.isArray(value) === isList &&
    (parameter.type !== "Number" || (Number(value) >= minValue && Number(value) <= maxValue)) &&
    (allowedValues?.map(String).includes(String(value)) ?? true) &&
    (allowedPattern === undefined || new RegExp(`^(?:${allowedPattern})$`).test(String(value)));
  const right = parameter.constraintDescription ?? allowedValues?.join(", ") ?? `${minValue} to ${maxValue}`;
  if (!isRight) throw new Error(`parameter ${name}: ${JSON.stringify(value)} is not ${isList ? "a list" : right}`);
}
