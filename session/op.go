package session

// Op names an exchange.
type Op string

// Ops of the methods of [Client]. Those of an [Exchange] have other names.
const (
	OpStart    Op = "start"    // open a session
	OpPut      Op = "put"      // object data that is not the last
	OpQuery    Op = "query"    // ask for the committed offset
	OpFinalize Op = "finalize" // the last object data, or none, with the size and the checksum
	OpCancel   Op = "cancel"   // end the session and drop its bytes
	OpInsert   Op = "insert"   // a small object in one request, without a session
	OpStat     Op = "stat"     // metadata of the object at the destination
)

// begins reports whether an exchange may be the first contact. Its failure may mean that
// the service or the bucket does not exist.
func (op Op) begins() bool {
	return op != OpPut && op != OpQuery && op != OpFinalize && op != OpCancel
}
