variable "name" {
  description = "Name of the role and prefix of what belongs to it."
  type        = string
  default     = "bigfleet-provider"
}

variable "provider_label" {
  description = "The provider's --provider: the value of the tag bigfleet:provider on its hosts."
  type        = string
}

variable "trust_policy" {
  description = "JSON of the trust policy: who may take the role (IRSA, EKS Pod Identity, an EC2 role)."
  type        = string
}

variable "node_role_arn" {
  description = "The role of the nodes, which the provider hands to new hosts."
  type        = string
}

variable "image_parameters" {
  description = "Parameters that --image names by ssm: or family:, as ARNs; empty when images are ids."
  type        = list(string)
  default     = ["arn:aws:ssm:*::parameter/aws/service/*"]
}

variable "disk_encryption_key_arns" {
  description = "KMS keys of encrypted root disks; empty without --disk-encryption-key."
  type        = list(string)
  default     = []
}

variable "interruption_notices" {
  description = "Make a queue and the EventBridge rules that feed it."
  type        = bool
  default     = true
}
