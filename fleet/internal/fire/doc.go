// Package fire has a test of whole fleets: three NATS servers, four workers, an emulator
// of Cloud Storage, all of them processes that are killed, stopped, cut off and wiped at
// seeded moments. The checker knows nothing of the fleet. It sees the objects, and the
// requests that the emulator received.
package fire
