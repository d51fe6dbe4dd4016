package faults

// Op is the operation of a request. A [Match] selects it, and the request log shows
// it.
type Op string

// The operations. The first five make up a resumable upload.
const (
	OpStart    Op = "start"    // begin an upload session, JSON or XML
	OpPut      Op = "put"      // a data request that cannot be the session's last
	OpFinalize Op = "finalize" // carries the last byte, or the total of an object whose bytes are all there: it makes the object
	OpQuery    Op = "query"    // "bytes */T" or "bytes */*": what is the committed offset?
	OpCancel   Op = "cancel"   // DELETE on the session

	OpInsert  Op = "insert"  // a whole object in one request: media, multipart, XML PUT
	OpGet     Op = "get"     // metadata: JSON GET, XML HEAD
	OpRead    Op = "read"    // bytes: alt=media, XML GET
	OpList    Op = "list"    // the objects of a bucket
	OpDelete  Op = "delete"  // an object
	OpPatch   Op = "patch"   // an object's metadata: PATCH or PUT
	OpCompose Op = "compose" // make one object from others
	OpRewrite Op = "rewrite" // rewriteTo, copyTo and XML copy
	OpRestore Op = "restore" // a soft-deleted object
	OpMove    Op = "move"    // rename an object within its bucket

	OpPartsStart    Op = "parts-start"    // XML multipart upload: initiate
	OpPartsPut      Op = "parts-put"      // upload one part
	OpPartsComplete Op = "parts-complete" // make the object
	OpPartsAbort    Op = "parts-abort"    // abort the upload
	OpPartsList     Op = "parts-list"     // list the parts of an upload
	OpPartsUploads  Op = "parts-uploads"  // list the uploads of a bucket

	OpBucketInsert Op = "bucket-insert"
	OpBucketGet    Op = "bucket-get"
	OpBucketList   Op = "bucket-list"
	OpBucketPatch  Op = "bucket-patch"
	OpBucketDelete Op = "bucket-delete"
	OpBucketLayout Op = "bucket-layout"

	OpBucketPermissions Op = "bucket-permissions" // which permissions the caller has
	OpBucketLock        Op = "bucket-lock"        // lock the retention policy
	OpPolicyGet         Op = "policy-get"         // the IAM policy of a bucket
	OpPolicySet         Op = "policy-set"

	OpACLList   Op = "acl-list" // access control lists of objects and buckets, and the default for objects
	OpACLGet    Op = "acl-get"
	OpACLInsert Op = "acl-insert"
	OpACLPatch  Op = "acl-patch" // PATCH or PUT
	OpACLDelete Op = "acl-delete"

	OpNotificationInsert Op = "notification-insert" // notifications of changes to Pub/Sub
	OpNotificationGet    Op = "notification-get"
	OpNotificationList   Op = "notification-list"
	OpNotificationDelete Op = "notification-delete"

	OpFolderInsert Op = "folder-insert" // folders of a bucket with hierarchical namespace
	OpFolderGet    Op = "folder-get"
	OpFolderList   Op = "folder-list"
	OpFolderDelete Op = "folder-delete"

	OpManagedFolderInsert      Op = "managed-folder-insert"
	OpManagedFolderGet         Op = "managed-folder-get"
	OpManagedFolderList        Op = "managed-folder-list"
	OpManagedFolderDelete      Op = "managed-folder-delete"
	OpManagedFolderPermissions Op = "managed-folder-permissions" // which permissions the caller has

	OpHMACInsert Op = "hmac-insert" // HMAC keys of a project
	OpHMACGet    Op = "hmac-get"
	OpHMACList   Op = "hmac-list"
	OpHMACUpdate Op = "hmac-update"
	OpHMACDelete Op = "hmac-delete"

	OpServiceAccount Op = "service-account" // of a project

	OpBatch Op = "batch" // several calls in one request; each also counts by itself

	OpControl Op = "control" // fakegcs's own paths; faults never apply
	OpUnknown Op = "unknown" // anything else
)
