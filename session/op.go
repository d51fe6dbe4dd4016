package session

// Op names an exchange.
type Op string

// Ops of the methods of [Client].
const (
	OpStart    Op = "start"    // open a session
	OpPut      Op = "put"      // object data that is not the last
	OpQuery    Op = "query"    // ask for the committed offset
	OpFinalize Op = "finalize" // the last object data, or none, with the size and the checksum
	OpCancel   Op = "cancel"   // end the session and drop its bytes
	OpInsert   Op = "insert"   // a small object in one request, without a session
	OpStat     Op = "stat"     // metadata of the object at the destination
	OpList     Op = "list"     // a page of the objects in a bucket
	OpRead     Op = "read"     // the content of a small object
	OpDelete   Op = "delete"   // delete an object
	OpBucket   Op = "bucket"   // the configuration of a bucket, or the names of buckets
	OpCompose  Op = "compose"  // make an object from others

	OpNotifications Op = "notifications"  // the notifications of a bucket
	OpPermissions   Op = "permissions"    // the caller's permissions for a bucket, or a managed folder
	OpManagedFolder Op = "managed-folder" // whether a managed folder exists
	OpFolderDelete  Op = "folder-delete"  // delete a folder if it is empty

	OpMultipartStart Op = "multipart-start" // open a multipart upload
	OpPart           Op = "part"            // one part of a multipart upload
	OpParts          Op = "parts"           // list the parts that the service has
	OpComplete       Op = "complete"        // make an object from the parts
	OpAbort          Op = "abort"           // end a multipart upload and drop its parts
)

// begins reports whether an exchange is the first contact. Its failure may mean
// that the service or the bucket does not exist.
func (op Op) begins() bool {
	switch op {
	case OpStart, OpInsert, OpStat, OpList, OpRead, OpDelete, OpBucket, OpNotifications, OpPermissions, OpManagedFolder, OpFolderDelete, OpMultipartStart:
		return true
	}
	return false
}

// carriesData reports whether the request has object data.
func (op Op) carriesData() bool {
	return op == OpPut || op == OpFinalize || op == OpInsert || op == OpPart
}

// Changes reports whether the service counts the request in the rate of changes to the objects
// of a bucket (https://cloud.google.com/storage/docs/request-rate). An upload of several requests
// counts once, when it starts.
func (op Op) Changes() bool {
	switch op {
	case OpStart, OpInsert, OpMultipartStart, OpDelete, OpCompose:
		return true
	}
	return false
}
