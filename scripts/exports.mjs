/** The lint of exports: no boolean among the parameters, and one name for one thing. Pure. */
import { parseSync } from 'oxc-parser';

const isBoolean = (type) =>
  type?.type === 'TSBooleanKeyword' || (type?.type === 'TSUnionType' && type.types.some(isBoolean));

/** The parameters of a function that are booleans: a call with `true` among its arguments does not say what is true. */
function booleansOf(fn) {
  return fn.params.flatMap((param) => {
    const inner = param.type === 'TSParameterProperty' ? param.parameter : param;
    const byDefault = inner.type === 'AssignmentPattern' && typeof inner.right.value === 'boolean';
    const named = inner.type === 'AssignmentPattern' ? inner.left : inner;
    return byDefault || isBoolean(named.typeAnnotation?.typeAnnotation) ? [named.name ?? ''] : [];
  });
}

const isFunction = (node) => node?.type === 'ArrowFunctionExpression' || node?.type === 'FunctionExpression';

/** The functions of a declaration that others can call, by name. */
function functionsOf(declaration) {
  if (declaration.type === 'FunctionDeclaration') return [[declaration.id.name, declaration]];
  if (declaration.type === 'VariableDeclaration')
    return declaration.declarations.flatMap(({ id, init }) => (isFunction(init) ? [[id.name, init]] : []));
  if (declaration.type !== 'ClassDeclaration') return [];
  return declaration.body.body.flatMap((member) =>
    member.type === 'MethodDefinition' && member.key.type !== 'PrivateIdentifier' && member.accessibility !== 'private'
      ? [[`${declaration.id.name}.${member.key.name}`, member.value]]
      : [],
  );
}

const namesOf = (declaration) =>
  declaration.type === 'VariableDeclaration'
    ? declaration.declarations.flatMap(({ id }) => (id.type === 'Identifier' ? [id.name] : []))
    : [declaration.id.name];

/**
 * The exports of a file: the names that it declares, and its functions with boolean parameters.
 *
 * @param {string} path
 * @param {string} text
 * @returns {{ names: string[], booleans: { name: string, parameters: string[] }[] }}
 */
export function exportsOf(path, text) {
  const declarations = parseSync(path, text).program.body.flatMap((statement) =>
    statement.type === 'ExportNamedDeclaration' && statement.declaration !== null ? [statement.declaration] : [],
  );
  return {
    names: declarations.flatMap(namesOf),
    booleans: declarations
      .flatMap(functionsOf)
      .map(([name, fn]) => ({ name, parameters: booleansOf(fn) }))
      .filter(({ parameters }) => parameters.length > 0),
  };
}

/**
 * Names that more than one file declares and exports, with the files.
 *
 * @param {ReadonlyMap<string, readonly string[]>} namesByFile
 * @returns {Map<string, string[]>}
 */
export function homonymsOf(namesByFile) {
  const files = new Map();
  for (const [file, names] of namesByFile)
    for (const name of new Set(names)) files.set(name, [...(files.get(name) ?? []), file]);
  return new Map([...files].filter(([, of]) => of.length > 1));
}
