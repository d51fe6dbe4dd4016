package faults

// Op is the operation of a request. A [Match] selects it, and the request log shows it.
// Besides the constants, there are
//
//	rewrite restore move parts-uploads batch service-account
//	bucket-insert bucket-list bucket-patch bucket-delete bucket-lock
//	policy-get policy-set
//	acl-insert acl-get acl-list acl-patch acl-delete
//	notification-insert notification-get notification-delete
//	folder-insert folder-get folder-list
//	managed-folder-insert managed-folder-list managed-folder-delete
//	hmac-insert hmac-get hmac-list hmac-update hmac-delete
//
// The log also has control, for the emulator's own paths, to which faults never apply, and
// unknown, for anything else.
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

	OpPartsStart    Op = "parts-start"    // XML multipart upload: initiate
	OpPartsPut      Op = "parts-put"      // upload one part
	OpPartsComplete Op = "parts-complete" // make the object
	OpPartsAbort    Op = "parts-abort"    // abort the upload
	OpPartsList     Op = "parts-list"     // list the parts of an upload

	OpBucketGet    Op = "bucket-get"
	OpBucketLayout Op = "bucket-layout"

	OpBucketPermissions Op = "bucket-permissions" // which permissions the caller has

	OpNotificationList Op = "notification-list"

	OpFolderDelete Op = "folder-delete"

	OpManagedFolderGet         Op = "managed-folder-get"
	OpManagedFolderPermissions Op = "managed-folder-permissions" // which permissions the caller has
)
