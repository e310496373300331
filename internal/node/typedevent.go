package node

import (
	"encoding/json"
	"reflect"
	"sync"

	"github.com/troupe-run/troupe/agent/event"
	"github.com/troupe-run/troupe/client"
)

// dataTypes are the types of the data of events, by kind.
var dataTypes = sync.OnceValue(func() map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for kind, zero := range event.RunKinds() {
		types[kind] = reflect.TypeOf(zero)
	}
	return types
})

// TypedEvent decodes the data of an event into its Go type, or leaves them as they are.
func TypedEvent(e client.Event) event.Published {
	typed := e.Published
	typed.Data = e.Data
	of := dataTypes()[e.Kind]
	if of == nil {
		return typed
	}
	value := reflect.New(of)
	if err := json.Unmarshal(e.Data, value.Interface()); err != nil { // the caller sees the bytes
		return typed
	}
	typed.Data = value.Elem().Interface()
	return typed
}
