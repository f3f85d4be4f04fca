# The application as a stack of CloudFormation that Terraform manages. docs/guides/deploy.md says how to package a release for it.
terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

variable "name" {
  description = "The name of the stack, which the names of its buckets and functions contain"
  type        = string
  default     = "lastmile"
}

variable "bucket" {
  description = "The bucket that `sam package` uploaded the functions to; the template goes there too"
  type        = string
}

variable "template" {
  description = "The file that `sam package` wrote"
  type        = string
  default     = "packaged.yaml"
}

variable "default_topic" {
  description = "The topic of events that name none, as namespace/topic; empty for none"
  type        = string
  default     = ""
}

variable "alarm_topic_arn" {
  description = "The SNS topic that alarms notify; empty for none"
  type        = string
  default     = ""
}

variable "parameters" {
  description = "Further parameters of the template. Lists are texts with commas"
  type        = map(string)
  default     = {}
}

data "aws_s3_bucket" "packages" {
  bucket = var.bucket
}

# CloudFormation takes a template of this size from a bucket only. Another template has another key, so the stack changes.
resource "aws_s3_object" "template" {
  bucket = data.aws_s3_bucket.packages.id
  key    = "${var.name}/${filesha256(var.template)}.yaml"
  source = var.template
}

resource "aws_cloudformation_stack" "lastmile" {
  name         = var.name
  template_url = "https://${data.aws_s3_bucket.packages.bucket_regional_domain_name}/${aws_s3_object.template.key}"
  capabilities = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]

  parameters = merge({
    DefaultTopic  = var.default_topic
    Observability = "true"
    AlarmTopicArn = var.alarm_topic_arn
  }, var.parameters)
}

output "events_queue_url" {
  description = "The queue to publish to"
  value       = aws_cloudformation_stack.lastmile.outputs["EventsQueueUrl"]
}

output "dead_letter_bucket" {
  description = "The bucket of the dead letters"
  value       = aws_cloudformation_stack.lastmile.outputs["DeadLetterBucketName"]
}

output "outputs" {
  description = "All outputs of the stack"
  value       = aws_cloudformation_stack.lastmile.outputs
}
