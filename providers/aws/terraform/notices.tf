# The queue into which EventBridge puts what EC2 says about hosts that will go or are gone.

locals {
  events = {
    warning   = "EC2 Spot Instance Interruption Warning"
    rebalance = "EC2 Instance Rebalance Recommendation"
    state     = "EC2 Instance State-change Notification"
  }
}

resource "aws_sqs_queue" "notices" {
  count                     = var.interruption_notices ? 1 : 0
  name                      = "${var.name}-notices"
  message_retention_seconds = 300
  sqs_managed_sse_enabled   = true
}

data "aws_iam_policy_document" "notices" {
  count = var.interruption_notices ? 1 : 0

  statement {
    actions   = ["sqs:SendMessage"]
    resources = [aws_sqs_queue.notices[0].arn]
    principals {
      type        = "Service"
      identifiers = ["events.amazonaws.com"]
    }
  }

  statement {
    sid       = "TlsOnly"
    effect    = "Deny"
    actions   = ["sqs:*"]
    resources = [aws_sqs_queue.notices[0].arn]
    principals {
      type        = "*"
      identifiers = ["*"]
    }
    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }
}

resource "aws_sqs_queue_policy" "notices" {
  count     = var.interruption_notices ? 1 : 0
  queue_url = aws_sqs_queue.notices[0].id
  policy    = data.aws_iam_policy_document.notices[0].json
}

resource "aws_cloudwatch_event_rule" "notices" {
  for_each = var.interruption_notices ? local.events : {}
  name     = "${var.name}-${each.key}"
  event_pattern = jsonencode({
    source        = ["aws.ec2"]
    "detail-type" = [each.value]
  })
}

resource "aws_cloudwatch_event_target" "notices" {
  for_each = aws_cloudwatch_event_rule.notices
  rule     = each.value.name
  arn      = aws_sqs_queue.notices[0].arn
}
