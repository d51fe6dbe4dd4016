package faultplan

// Op is the operation that a request asks for. The constants are documented in
// package fakegcs, which exports them.
type Op string

// The operations.
const (
	OpStart    Op = "start"
	OpPut      Op = "put"
	OpFinalize Op = "finalize"
	OpQuery    Op = "query"
	OpCancel   Op = "cancel"

	OpInsert  Op = "insert"
	OpGet     Op = "get"
	OpRead    Op = "read"
	OpList    Op = "list"
	OpDelete  Op = "delete"
	OpPatch   Op = "patch"
	OpCompose Op = "compose"
	OpRewrite Op = "rewrite"
	OpRestore Op = "restore"
	OpMove    Op = "move"

	OpPartsStart    Op = "parts-start"
	OpPartsPut      Op = "parts-put"
	OpPartsComplete Op = "parts-complete"
	OpPartsAbort    Op = "parts-abort"
	OpPartsList     Op = "parts-list"
	OpPartsUploads  Op = "parts-uploads"

	OpBucketInsert Op = "bucket-insert"
	OpBucketGet    Op = "bucket-get"
	OpBucketList   Op = "bucket-list"
	OpBucketPatch  Op = "bucket-patch"
	OpBucketDelete Op = "bucket-delete"
	OpBucketLayout Op = "bucket-layout"

	OpBucketPermissions Op = "bucket-permissions"
	OpBucketLock        Op = "bucket-lock"
	OpPolicyGet         Op = "policy-get"
	OpPolicySet         Op = "policy-set"

	OpACLList   Op = "acl-list"
	OpACLGet    Op = "acl-get"
	OpACLInsert Op = "acl-insert"
	OpACLPatch  Op = "acl-patch"
	OpACLDelete Op = "acl-delete"

	OpNotificationInsert Op = "notification-insert"
	OpNotificationGet    Op = "notification-get"
	OpNotificationList   Op = "notification-list"
	OpNotificationDelete Op = "notification-delete"

	OpHMACInsert Op = "hmac-insert"
	OpHMACGet    Op = "hmac-get"
	OpHMACList   Op = "hmac-list"
	OpHMACUpdate Op = "hmac-update"
	OpHMACDelete Op = "hmac-delete"

	OpServiceAccount Op = "service-account"

	OpBatch Op = "batch"

	OpControl Op = "control"
	OpUnknown Op = "unknown"
)
