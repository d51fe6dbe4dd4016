package fakegcs

import "gcsup/fakegcs/internal/faultplan"

// Op is the operation of a request. Fault plans match it, and the request log shows
// it.
type Op = faultplan.Op

// The operations. The first five make up a resumable upload.
const (
	OpStart    = faultplan.OpStart    // begin an upload session, JSON or XML
	OpPut      = faultplan.OpPut      // a data request that cannot be the session's last
	OpFinalize = faultplan.OpFinalize // carries the last byte, or the total of an object whose bytes are all there: it makes the object
	OpQuery    = faultplan.OpQuery    // "bytes */T" or "bytes */*": what is the committed offset?
	OpCancel   = faultplan.OpCancel   // DELETE on the session

	OpInsert  = faultplan.OpInsert  // a whole object in one request: media, multipart, XML PUT
	OpGet     = faultplan.OpGet     // metadata: JSON GET, XML HEAD
	OpRead    = faultplan.OpRead    // bytes: alt=media, XML GET
	OpList    = faultplan.OpList    // the objects of a bucket
	OpDelete  = faultplan.OpDelete  // an object
	OpPatch   = faultplan.OpPatch   // an object's metadata: PATCH or PUT
	OpCompose = faultplan.OpCompose // make one object from others
	OpRewrite = faultplan.OpRewrite // rewriteTo, copyTo and XML copy
	OpRestore = faultplan.OpRestore // a soft-deleted object
	OpMove    = faultplan.OpMove    // rename an object within its bucket

	OpPartsStart    = faultplan.OpPartsStart    // XML multipart upload: initiate
	OpPartsPut      = faultplan.OpPartsPut      // upload one part
	OpPartsComplete = faultplan.OpPartsComplete // make the object
	OpPartsAbort    = faultplan.OpPartsAbort    // abort the upload
	OpPartsList     = faultplan.OpPartsList     // list the parts of an upload
	OpPartsUploads  = faultplan.OpPartsUploads  // list the uploads of a bucket

	OpBucketInsert = faultplan.OpBucketInsert
	OpBucketGet    = faultplan.OpBucketGet
	OpBucketList   = faultplan.OpBucketList
	OpBucketPatch  = faultplan.OpBucketPatch
	OpBucketDelete = faultplan.OpBucketDelete
	OpBucketLayout = faultplan.OpBucketLayout

	OpBucketPermissions = faultplan.OpBucketPermissions // which permissions the caller has
	OpBucketLock        = faultplan.OpBucketLock        // lock the retention policy
	OpPolicyGet         = faultplan.OpPolicyGet         // the IAM policy of a bucket
	OpPolicySet         = faultplan.OpPolicySet

	OpACLList   = faultplan.OpACLList // access control lists of objects and buckets, and the default for objects
	OpACLGet    = faultplan.OpACLGet
	OpACLInsert = faultplan.OpACLInsert
	OpACLPatch  = faultplan.OpACLPatch // PATCH or PUT
	OpACLDelete = faultplan.OpACLDelete

	OpNotificationInsert = faultplan.OpNotificationInsert // notifications of changes to Pub/Sub
	OpNotificationGet    = faultplan.OpNotificationGet
	OpNotificationList   = faultplan.OpNotificationList
	OpNotificationDelete = faultplan.OpNotificationDelete

	OpHMACInsert = faultplan.OpHMACInsert // HMAC keys of a project
	OpHMACGet    = faultplan.OpHMACGet
	OpHMACList   = faultplan.OpHMACList
	OpHMACUpdate = faultplan.OpHMACUpdate
	OpHMACDelete = faultplan.OpHMACDelete

	OpServiceAccount = faultplan.OpServiceAccount // of a project

	OpBatch = faultplan.OpBatch // several calls in one request; each also counts by itself

	OpControl = faultplan.OpControl // fakegcs's own paths; faults never apply
	OpUnknown = faultplan.OpUnknown // anything else
)
