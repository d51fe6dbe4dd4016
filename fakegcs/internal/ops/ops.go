// Package ops has the names of the operations that have no constant in package faults. They are
// untyped, so that they are values of faults.Op.
package ops

// The operations.
const (
	Rewrite = "rewrite" // rewriteTo, copyTo and XML copy
	Restore = "restore" // a soft-deleted object
	Move    = "move"    // rename an object within its bucket

	PartsUploads = "parts-uploads" // list the uploads of a bucket

	BucketInsert = "bucket-insert"
	BucketList   = "bucket-list"
	BucketPatch  = "bucket-patch"
	BucketDelete = "bucket-delete"

	BucketLock = "bucket-lock" // lock the retention policy
	PolicyGet  = "policy-get"  // the IAM policy of a bucket
	PolicySet  = "policy-set"

	ACLList   = "acl-list" // access control lists of objects and buckets, and the default for objects
	ACLGet    = "acl-get"
	ACLInsert = "acl-insert"
	ACLPatch  = "acl-patch" // PATCH or PUT
	ACLDelete = "acl-delete"

	NotificationInsert = "notification-insert" // notifications of changes to Pub/Sub
	NotificationGet    = "notification-get"
	NotificationDelete = "notification-delete"

	FolderInsert = "folder-insert" // folders of a bucket with hierarchical namespace
	FolderGet    = "folder-get"
	FolderList   = "folder-list"

	ManagedFolderInsert = "managed-folder-insert"
	ManagedFolderList   = "managed-folder-list"
	ManagedFolderDelete = "managed-folder-delete"

	HMACInsert = "hmac-insert" // HMAC keys of a project
	HMACGet    = "hmac-get"
	HMACList   = "hmac-list"
	HMACUpdate = "hmac-update"
	HMACDelete = "hmac-delete"

	ServiceAccount = "service-account" // of a project

	Batch = "batch" // several calls in one request; each also counts by itself

	Control = "control" // fakegcs's own paths; faults never apply
	Unknown = "unknown" // anything else
)
