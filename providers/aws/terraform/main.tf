# The rights of the provider aws, no more than it uses, and the queue of its spot notices.
#
#   module "bigfleet_provider" {
#     source         = "./providers/aws/terraform"
#     provider_label = "aws-eu-west-1"
#     node_role_arn  = aws_iam_role.node.arn
#     trust_policy   = data.aws_iam_policy_document.trust.json
#   }

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

data "aws_iam_policy_document" "provider" {
  statement {
    sid = "Read"
    actions = [
      "ec2:DescribeImages",
      "ec2:DescribeInstanceTypes",
      "ec2:DescribeInstances",
      "ec2:DescribeSpotPriceHistory",
      "pricing:GetProducts",
      "ssm:GetCommandInvocation",
    ]
    resources = ["*"]
  }

  # An order names images, subnets and groups, which carry no tag of ours.
  statement {
    sid     = "LaunchFrom"
    actions = ["ec2:RunInstances"]
    resources = [
      "arn:*:ec2:*::image/*",
      "arn:*:ec2:*:*:capacity-reservation/*",
      "arn:*:ec2:*:*:key-pair/*",
      "arn:*:ec2:*:*:network-interface/*",
      "arn:*:ec2:*:*:placement-group/*",
      "arn:*:ec2:*:*:security-group/*",
      "arn:*:ec2:*:*:subnet/*",
      "arn:*:ec2:*::snapshot/*",
    ]
  }

  statement {
    sid       = "Launch"
    actions   = ["ec2:RunInstances"]
    resources = ["arn:*:ec2:*:*:instance/*", "arn:*:ec2:*:*:volume/*"]
    condition {
      test     = "StringEquals"
      variable = "aws:RequestTag/bigfleet:provider"
      values   = [var.provider_label]
    }
  }

  statement {
    sid       = "TagWhatIsLaunched"
    actions   = ["ec2:CreateTags"]
    resources = ["arn:*:ec2:*:*:instance/*", "arn:*:ec2:*:*:volume/*"]
    condition {
      test     = "StringEquals"
      variable = "ec2:CreateAction"
      values   = ["RunInstances"]
    }
  }

  statement {
    sid = "OwnHosts"
    actions = [
      "ec2:CreateTags",
      "ec2:DeleteTags",
      "ec2:StartInstances",
      "ec2:TerminateInstances",
    ]
    resources = ["arn:*:ec2:*:*:instance/*"]
    condition {
      test     = "StringEquals"
      variable = "aws:ResourceTag/bigfleet:provider"
      values   = [var.provider_label]
    }
  }

  statement {
    sid       = "CommandOwnHosts"
    actions   = ["ssm:SendCommand"]
    resources = ["arn:*:ec2:*:*:instance/*"]
    condition {
      test     = "StringEquals"
      variable = "aws:ResourceTag/bigfleet:provider"
      values   = [var.provider_label]
    }
  }

  statement {
    sid       = "CommandDocument"
    actions   = ["ssm:SendCommand"]
    resources = ["arn:*:ssm:*::document/AWS-RunShellScript"]
  }

  statement {
    sid       = "NodeRole"
    actions   = ["iam:PassRole"]
    resources = [var.node_role_arn]
    condition {
      test     = "StringEquals"
      variable = "iam:PassedToService"
      values   = ["ec2.amazonaws.com"]
    }
  }

  dynamic "statement" {
    for_each = length(var.image_parameters) > 0 ? [1] : []
    content {
      sid       = "ImageAliases"
      actions   = ["ssm:GetParameter"]
      resources = var.image_parameters
    }
  }

  dynamic "statement" {
    for_each = length(var.disk_encryption_key_arns) > 0 ? [1] : []
    content {
      sid = "EncryptedDisks"
      actions = [
        "kms:CreateGrant",
        "kms:Decrypt",
        "kms:DescribeKey",
        "kms:GenerateDataKeyWithoutPlaintext",
        "kms:ReEncryptFrom",
        "kms:ReEncryptTo",
      ]
      resources = var.disk_encryption_key_arns
    }
  }

  dynamic "statement" {
    for_each = var.interruption_notices ? [1] : []
    content {
      sid       = "Notices"
      actions   = ["sqs:DeleteMessage", "sqs:ReceiveMessage"]
      resources = [aws_sqs_queue.notices[0].arn]
    }
  }
}

resource "aws_iam_role" "provider" {
  name               = var.name
  assume_role_policy = var.trust_policy
}

resource "aws_iam_role_policy" "provider" {
  name   = var.name
  role   = aws_iam_role.provider.id
  policy = data.aws_iam_policy_document.provider.json
}
