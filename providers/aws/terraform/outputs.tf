output "role_arn" {
  description = "The role of the provider."
  value       = aws_iam_role.provider.arn
}

output "queue_url" {
  description = "For --spot-interruption-queue; empty without notices."
  value       = var.interruption_notices ? aws_sqs_queue.notices[0].url : ""
}
