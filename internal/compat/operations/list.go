package operations

import (
	"context"

	"cloud.google.com/go/storage"
)

// operation is something that programs do with the library. Its error reports that the server
// refuses it, or the difference from what the service does.
type operation struct {
	name string
	do   func(context.Context, place) error
}

// place is where an operation runs: a bucket of its own, which is new and empty.
type place struct {
	client *storage.Client
	bucket *storage.BucketHandle
}

// operations are the ordinary operations. They were chosen before any server was run with them,
// and leave out what only tests of clients need, such as resuming an upload.
var operations = []operation{
	{"create a bucket with attributes", createBucket},
	{"read the attributes of a bucket", bucketAttrs},
	{"update the attributes of a bucket", updateBucket},
	{"list buckets by prefix", listBuckets},
	{"delete a bucket", deleteBucket},
	{"lock a retention policy", lockRetention},
	{"keep and delete a notification", notification},
	{"change the policy of a bucket", policy},
	{"change access control lists", accessLists},

	{"write an object in one request", writeWhole},
	{"write an object in chunks", writeChunks},
	{"write an object whose last chunk is full", writeFullChunks},
	{"write an object if it is absent", writeIfAbsent},
	{"write with a checksum", writeChecked},
	{"read an object", readWhole},
	{"read ranges of an object", readRanges},
	{"read an earlier generation", readGeneration},
	{"read a compressed object", readCompressed},
	{"read the attributes of an object", objectAttrs},
	{"update the attributes of an object", updateObject},
	{"list by prefix and delimiter", listPrefix},
	{"list in pages", listPages},
	{"list by a glob", listGlob},
	{"copy an object to another bucket", copyObject},
	{"compose objects", composeObjects},
	{"move an object", moveObject},
	{"delete an object with a condition", deleteObject},
}
